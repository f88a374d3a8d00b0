import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { textOf } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { SessionId } from '@dsh/protocol'
import type { Agent } from '../../src/core/agent/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { approval } from '../../src/plugins/approval/index.ts'
import { bash } from '../../src/plugins/bash/index.ts'
import { fs } from '../../src/plugins/fs/index.ts'
import { hooks } from '../../src/plugins/hooks/index.ts'
import type { HookNotice, HooksConfig } from '../../src/plugins/hooks/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import type { SandboxMode } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { LocalTrust, projectParts, trust } from '../../src/plugins/trust/index.ts'
import type { ScriptEntry } from '../../src/plugins/llm-scripted/index.ts'
import { createHarness, say } from '../../src/testing/index.ts'

export interface HooksPlaceOptions {
  readonly script?: readonly ScriptEntry[]
  readonly mode?: SandboxMode
  /** Of `.claude/settings.json`, trusted unless said otherwise. */
  readonly claude?: object
  readonly codex?: object
  readonly isTrusted?: boolean
  readonly config?: Partial<HooksConfig>
  readonly files?: Readonly<Record<string, string>>
  /** Name of the folder of the session. */
  readonly name?: string
  readonly hasSandbox?: boolean
  readonly hasApproval?: boolean
}

export function group(command: string, rest: object = {}, matcher?: string): object {
  return { ...(matcher !== undefined && { matcher }), hooks: [{ type: 'command', command, ...rest }] }
}

/** A project with hooks, a scripted model, and the real shell, files and sandbox. */
export async function hooksPlace(options: HooksPlaceOptions = {}) {
  const { script = [], mode = 'workspace-write', claude, codex, isTrusted = true, name = 'work' } = options
  const root = realpathSync(mkdtempSync('/var/tmp/dsh-hooks-'))
  const home = join(root, 'home')
  const work = join(root, name)
  mkdirSync(home)
  mkdirSync(work)
  const put = (path: string, content: string): void => {
    mkdirSync(dirname(join(work, path)), { recursive: true })
    writeFileSync(join(work, path), content)
    if (path.endsWith('.sh')) chmodSync(join(work, path), 0o755)
  }
  for (const [path, content] of Object.entries(options.files ?? {})) put(path, content)
  if (claude !== undefined) put('.claude/settings.json', JSON.stringify({ hooks: claude }))
  if (codex !== undefined) put('.codex/hooks.json', JSON.stringify({ hooks: codex }))
  const trusted = async (): Promise<void> =>
    await new LocalTrust(home).grant(
      work,
      projectParts(work).parts.map(({ path, sha256 }) => ({ path, sha256 })),
    )
  if (isTrusted) await trusted()
  const { ctx, adapter } = await createHarness(script)
  await ctx.plugin(fs)
  await ctx.plugin(subprocess)
  await ctx.plugin(sandbox, { mode, home })
  await ctx.plugin(trust, { home })
  if (options.hasApproval !== false) await ctx.plugin(approval, {})
  await ctx.plugin(bash)
  ctx.tools.register(
    defineTool({ name: 'look', description: 'Looks.', parameters: {}, execute: () => 'seen' }),
  )
  const notices: HookNotice[] = []
  ctx.on('hooks/notice', notice => void notices.push(notice))
  const plugin = worldOf(ctx, options).plugin(hooks, options.config ?? {})
  await plugin
  const handle = await ctx.agents.create({
    sessionId: SessionId('s'),
    meta: { cwd: work },
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  const { agent } = handle
  return {
    ctx,
    adapter,
    agent,
    handle,
    plugin,
    root,
    home,
    work,
    notices,
    put,
    trusted,
    said: () => notices.map(({ code, message }) => `${code}: ${message}`),
    read: (path: string) => readFileSync(join(work, path), 'utf8'),
    has: (path: string) => existsSync(join(work, path)),
    async turn(text: string): Promise<void> {
      agent.followup(say(text))
      await agent.whenIdle()
    },
    ...viewOf(agent),
    async [Symbol.asyncDispose](): Promise<void> {
      await ctx.dispose()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** Without a sandbox it is as on a machine where nothing confines. */
function worldOf(ctx: Context, { hasSandbox = true }: HooksPlaceOptions): Context {
  if (hasSandbox) return ctx
  const inner = ctx.isolate('sandbox')
  inner.provide('sandbox', {
    readiness: async () => ({ isReady: false, reason: 'none here' }),
    confine: async () => assert.fail('nothing can be confined'),
  })
  return inner
}

/** What the log of `agent` says, as tests ask for it. */
function viewOf({ session }: Agent) {
  return {
    /** The text of each result, as the model is shown it. */
    results: (): readonly string[] =>
      session.events.flatMap(event =>
        event.type === 'tool/result' ? event.data.message.content.map(block => textOf(block.content)) : [],
      ),
    /** The messages of hooks. */
    contexts: (): readonly string[] =>
      session.events.flatMap(event => {
        if (event.type !== 'user/message') return []
        const { source, content } = event.data
        return source.kind === 'plugin' && source.plugin === 'hooks' ? [textOf(content)] : []
      }),
    ofType: <Type extends SessionEvent['type']>(type: Type) =>
      session.events.filter((event): event is Extract<SessionEvent, { type: Type }> => event.type === type),
  }
}
