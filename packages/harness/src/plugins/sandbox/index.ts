import type { ToolExecution } from '../../core/tools/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { boundsSchema, sandboxSchema } from './config.ts'
import type { BoundsConfig, BoundsInput, SandboxConfig, SandboxInput } from './config.ts'
import { thisMachine } from './env.ts'
import { sandboxModeSchema } from './events.ts'
import { fence } from './fence.ts'
import { LocalSandbox } from './local.ts'
import type { PlantedRepositories } from './planted.ts'
import { LoggedPolicy } from './policy.ts'

export * from './errors.ts'
export * from './events.ts'
export * from './service.ts'
export type { SandboxConfig } from './config.ts'
export { placeholderSign } from './protected.ts'
export { changeRefusal } from './fence.ts'
export { lookForSandbox } from './local.ts'
export { judgeConfined } from './judge.ts'
export type { ConfinedEnd, ConfinedJudgement, DeniedAccess } from './judge.ts'

/**
 * How far tools reach: `ctx.sandboxPolicy` says it for each call, `ctx.sandbox` holds processes to it, and file tools
 * are held to it at the file they found.
 */
export const sandbox: PluginObject<SandboxInput, SandboxConfig> = {
  name: 'sandbox',
  inject: { required: ['sessions'], optional: ['fs'] },
  get Config() {
    return sandboxSchema()
  },
  apply(ctx: Context, config: SandboxConfig) {
    const machine = thisMachine()
    const policy = new LoggedPolicy(config, machine)
    const local = new LocalSandbox(machine, config.env)
    declareMode(ctx)
    ctx.provide('sandboxPolicy', policy)
    ctx.provide('sandbox', local)
    ctx.on('session/disposed', session => local.forget(policy.tempOf(session)))
    ctx.effect(() => () => local.close(), 'temporary folders and placeholders')
    fence(ctx)
    watchRepositories(ctx)
  },
}

/** Says in the result of a call that a repository came which git would obey unasked, outside of the sandbox. */
function watchRepositories(ctx: Context): void {
  let planted: Promise<PlantedRepositories> | undefined
  const look = async ({ agent }: ToolExecution): Promise<readonly string[]> => {
    const cwd = agent?.session.header.cwd
    if (cwd === undefined) return []
    planted ??= import('./planted.ts').then(module => new module.PlantedRepositories())
    return (await planted).look(cwd)
  }
  const options = { global: true } as const
  ctx.on('tools/pre-execute', async (execution, next) => (await look(execution), next()), options)
  ctx.on(
    'tools/post-execute',
    async (execution, result, next) => {
      const decision = await next()
      if (decision.kind !== 'accept' || decision.value !== undefined) return decision
      const paths = await look(execution)
      if (paths.length === 0) return decision
      const { plantedText } = await import('./planted.ts')
      ctx.emit('sandbox/planted', execution.agent, paths)
      const note = { type: 'text' as const, text: `\n${plantedText(paths)}` }
      return { ...decision, content: [...(decision.content ?? result.content), note] }
    },
    options,
  )
}

/** What people allow and deny beyond the defaults, where a composition says so. */
export const sandboxBounds: PluginObject<BoundsInput, BoundsConfig> = {
  name: 'sandbox-bounds',
  inject: ['sandboxPolicy'],
  get Config() {
    return boundsSchema()
  },
  apply(ctx: Context, config: BoundsConfig) {
    ctx.effect(() => ctx.sandboxPolicy.extend(config), 'bounds')
  },
}

function declareMode(ctx: Context): void {
  let schema: ReturnType<typeof sandboxModeSchema> | undefined
  ctx.sessions.registerEventType({
    type: 'sandbox/mode',
    validate(data) {
      schema ??= sandboxModeSchema()
      const [issue] = schema.safeParse(data).error?.issues ?? []
      if (issue !== undefined) throw new TypeError(`${issue.path.join('.') || 'data'}: ${issue.message}`)
    },
  })
}
