import type { Agent } from '../../core/agent/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../approval/index.ts'
import type { HookBridge } from './bridge.ts'
import { hooksSchema } from './config.ts'
import type { HooksConfig, HooksInput } from './config.ts'
import { hookEventSchemas } from './events.ts'
import { mayHaveHooks } from './project-files.ts'
import type { ProjectHooks } from './read-project.ts'

export * from './events.ts'
export type { HookNotice, HookNoticeCode } from './notice.ts'
export type { HooksConfig } from './config.ts'
export type { ProjectHooks } from './read-project.ts'

/** What the hook files of the project in `folder` declare, trusted or not. Nothing of it runs. */
export async function projectHooks(folder: string): Promise<readonly ProjectHooks[]> {
  const { readProjectHooks } = await import('./read-project.ts')
  return await readProjectHooks(folder)
}

/**
 * Runs the hooks of Claude Code and Codex: commands that are told of prompts, calls and ends of turns, and may have a say.
 *
 * Files count that a person configured, and those of a project with exactly the content that a person trusted. A hook runs
 * under the policy and in the folder of its session. Where there is no such file nothing is loaded or read.
 */
export const hooks: PluginObject<HooksInput, HooksConfig> = {
  name: 'hooks',
  inject: {
    required: ['sessions', 'subprocess', 'sandboxPolicy'],
    optional: ['sandbox', 'trust', 'approval'],
  },
  get Config() {
    return hooksSchema()
  },
  apply(ctx: Context, config: HooksConfig) {
    declareEvents(ctx)
    const begun = new WeakMap<Agent, string>()
    let opened: Promise<HookBridge> | undefined
    const open = async (): Promise<HookBridge> => {
      const { HookBridge: Bridge } = await import('./bridge.ts')
      return new Bridge(ctx, config)
    }
    /** Once there were hooks, files are looked at more closely than by their names. */
    const bridgeFor = async ({ session }: Agent): Promise<HookBridge | undefined> => {
      if (opened === undefined && !mayHaveHooks(config, session.header.cwd)) return undefined
      return await (opened ??= open())
    }
    ctx.effect(
      () => async () =>
        await (await opened)?.close({ isProgramEnd: rootOf(ctx).fiber.state === 'unloading' }),
      'hooks that run',
    )
    ctx.on('agent/session-start', ({ agent, source }) => void begun.set(agent, source))
    ctx.on('agent/pre-step', async (input, next) => {
      const bridge = await bridgeFor(input.agent)
      const source = begun.get(input.agent)
      return await (bridge === undefined ? next() : bridge.preStep({ ...input, source }, next))
    })
    ctx.on('tools/pre-execute', async (execution, next) => {
      const { agent } = execution
      const bridge = await opened
      if (agent === undefined || bridge === undefined) return await next()
      return await bridge.preExecute(agent, execution, next)
    })
    ctx.on('tools/post-execute', async (execution, result, next) => {
      const { agent } = execution
      const bridge = await opened
      if (agent === undefined || bridge === undefined) return await next()
      return await bridge.postExecute({ agent, execution, result }, next)
    })
    ctx.on('agent/turn-stopping', async ({ agent, turn, signal }) => {
      await (await opened)?.turnStopping(agent, turn, signal)
    })
    ctx.on(
      'approval/request',
      async ({ agent, toolName }, next) => {
        ;(await opened)?.permissionAsked(agent, toolName)
        return await next()
      },
      { prepend: true },
    )
    ctx.on('agent/disposed', ({ agent }) => {
      void opened?.then(bridge => bridge.agentDisposed(agent))
    })
  },
}

function declareEvents(ctx: Context): void {
  let schemas: ReturnType<typeof hookEventSchemas> | undefined
  for (const type of ['hook/invoked', 'hook/result'] as const)
    ctx.sessions.registerEventType({
      type,
      ignorable: true,
      validate(data) {
        schemas ??= hookEventSchemas()
        const [issue] = schemas[type].safeParse(data).error?.issues ?? []
        if (issue !== undefined) throw new TypeError(`${issue.path.join('.') || 'data'}: ${issue.message}`)
      },
    })
}

function rootOf(ctx: Context): Context {
  return ctx.parent === undefined ? ctx : rootOf(ctx.parent)
}
