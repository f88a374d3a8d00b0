import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { bash } from '@dsh/harness/plugins/bash'
import { persistentBash } from '@dsh/harness/plugins/persistent-bash'
import type { PersistentBashConfig } from '@dsh/harness/plugins/persistent-bash'
import { pty } from '@dsh/harness/plugins/pty'
import type { PtyConfig } from '@dsh/harness/plugins/pty'
import { sandbox } from '@dsh/harness/plugins/sandbox'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import { subprocess } from '@dsh/harness/plugins/subprocess'
import { tasks } from '@dsh/harness/plugins/tasks'
import { createHarness } from '@dsh/harness/testing'

export const noProc = existsSync('/proc/self/stat') ? false : 'the system shows no /proc'

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return noProc !== false || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits for what must come; the test's own limit is the end of it. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => setTimeout(resolve, 10))
}

interface PlaceOptions {
  /** The tool bash is one shell that stays. */
  readonly persistent?: Partial<PersistentBashConfig>
  readonly config?: Partial<PtyConfig>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Nothing confines without it. */
  readonly mode?: SandboxMode
}

/** An agent with terminals, in a folder of its own. */
export async function openPtyPlace({ config = {}, env = process.env, mode, persistent }: PlaceOptions = {}) {
  const folder = mode === undefined ? tmpdir() : '/var/tmp'
  const dir = realpathSync(mkdtempSync(join(folder, 'dsh-pty-')))
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess, { env })
  if (mode !== undefined) await ctx.plugin(sandbox, { mode, home: join(dir, 'home'), env })
  await ctx.plugin(tasks)
  await ctx.plugin(bash, { cwd: '/', tool: persistent === undefined })
  const plugin = ctx.plugin(pty, config)
  await plugin
  const staying = persistent && ctx.plugin(persistentBash, persistent)
  await staying
  const handle = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  const { agent } = handle
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
    persistent: staying,
    dir,
    agent,
    handle,
    call,
    bash: async (command: string) => (await call('bash', { command })).text,
    send: async (text: string, args: Record<string, JsonValue> = {}) =>
      (await call('terminal_send', { sessionId: 'pty-1', text, ...args })).text,
    /** Types what goes on for long, and does not wait for it. */
    begin: async (text: string) => {
      const send = { text, submit: true, timeoutMs: 100 }
      assert.equal((await ctx.pty.startSend(agent, 'pty-1', send).result).wait, 'timeout')
    },
    /** Waits for a line of the terminal. */
    line: (pattern: RegExp) =>
      until(() => ctx.pty.read(agent, 'pty-1', {}).lines.some(line => pattern.test(line))),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
