import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { bash } from '@dsh/harness/plugins/bash'
import { pty } from '@dsh/harness/plugins/pty'
import type { PtyConfig } from '@dsh/harness/plugins/pty'
import { sandbox } from '@dsh/harness/plugins/sandbox'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import { subprocess } from '@dsh/harness/plugins/subprocess'
import { tasks } from '@dsh/harness/plugins/tasks'
import { createHarness } from '@dsh/harness/testing'

interface PlaceOptions {
  readonly config?: Partial<PtyConfig>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Nothing confines without it. */
  readonly mode?: SandboxMode
}

/** An agent with terminals, in a folder of its own. */
export async function openPtyPlace({ config = {}, env = process.env, mode }: PlaceOptions = {}) {
  const folder = mode === undefined ? tmpdir() : '/var/tmp'
  const dir = realpathSync(mkdtempSync(join(folder, 'dsh-pty-')))
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess, { env })
  if (mode !== undefined) await ctx.plugin(sandbox, { mode, home: join(dir, 'home'), env })
  await ctx.plugin(tasks)
  await ctx.plugin(bash, { cwd: '/' })
  const plugin = ctx.plugin(pty, config)
  await plugin
  const { agent, dispose } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  let calls = 0
  const call = async (
    name: string,
    args: Record<string, JsonValue>,
    signal = new AbortController().signal,
  ) => {
    const input = { callId: CallId(`c${++calls}`), name: name, signal, agent, arguments: args }
    const { content, isError } = await ctx.tools.execute(input)
    const [block] = content
    return { text: block?.type === 'text' ? block.text : '', isError }
  }
  return {
    ctx,
    plugin,
    dir,
    agent,
    dispose,
    call,
    send: async (text: string, args: Record<string, JsonValue> = {}) =>
      (await call('terminal_send', { sessionId: 'pty-1', text, ...args })).text,
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
