import fs from 'node:fs'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { bash } from '../../src/plugins/bash/index.ts'
import type { BashResult } from '../../src/plugins/bash/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import type { SandboxMode } from '../../src/plugins/sandbox/index.ts'
import { sandboxShells } from '../../src/plugins/sandbox-shells/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'

export interface Ended {
  readonly result: BashResult
  readonly stdout: string
  readonly stderr: string
}

export interface SharedOptions {
  readonly mode?: SandboxMode
  readonly beginMs?: number
  readonly idleMs?: number
  readonly commands?: number
  readonly graceMs?: number
}

/** Whether a command ran in a sandbox that it shares: what it prints goes to a pipe of that. */
export const whereAmI = 'readlink /proc/$$/fd/1'

/** A session whose commands run in a sandbox that stands by, once one does. */
export async function shareSandbox({
  mode = 'workspace-write',
  graceMs = 300,
  ...config
}: SharedOptions = {}) {
  // Below /tmp a confined command has a folder of its own.
  const outside = fs.realpathSync(fs.mkdtempSync('/var/tmp/dsh-shared-'))
  const dir = join(outside, 'workspace')
  const home = join(outside, 'home')
  for (const folder of [dir, home]) fs.mkdirSync(folder)
  const { ctx } = await createHarness()
  await ctx.plugin(sandbox, { mode, home })
  await ctx.plugin(subprocess)
  const shells = ctx.plugin(sandboxShells, config)
  await shells
  await ctx.plugin(bash, { cwd: dir, graceMs, drainMs: 300 })
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  const start = async (command: string, options: StartOptions = {}) => {
    const { token, workdir = dir, timeoutMs = 20_000, signal } = options
    const policy = await ctx.sandboxPolicy.resolve({
      session: agent.session,
      ...(token !== undefined && { token }),
    })
    return await ctx.bash.start({ command, workdir, timeoutMs, policy, signal })
  }
  const run = async (command: string, options?: StartOptions): Promise<Ended> => {
    const process = await start(command, options)
    const result = await process.result
    return { result, stdout: textOf(result.stdout), stderr: textOf(result.stderr) }
  }
  const isShared = async (): Promise<boolean> => {
    try {
      return (await run(whereAmI)).stdout.startsWith('/dev/dsh/')
    } catch (error) {
      // What was to be hidden, a socket of another program, went before it was.
      if ((error as { code?: unknown }).code === 'SANDBOX_UNAVAILABLE') return false
      throw error
    }
  }
  return {
    ctx,
    agent,
    shells,
    dir,
    home,
    outside,
    start,
    run,
    isShared,
    /** Runs commands until one is served by a sandbox that stands by. */
    async warmUp(): Promise<void> {
      const deadline = performance.now() + 20_000
      while (!(await isShared())) {
        if (performance.now() > deadline) throw new Error('no sandbox stands by')
      }
    },
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(outside, { recursive: true, force: true })
    },
  }
}

export interface StartOptions {
  readonly token?: symbol
  readonly workdir?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export function textOf(output: BashResult['stdout']): string {
  return output.readFrom(0).text
}

/** Command lines that run on this machine, this process left out. */
export function commandLines(part: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(pid => {
      try {
        const line = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return line.includes(part) ? [line] : []
      } catch {
        return []
      }
    })
}

/** The same, once there are none any more or some time is over. */
export async function commandLinesLeft(part: string): Promise<string[]> {
  const deadline = performance.now() + 5000
  while (commandLines(part).length > 0 && performance.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, 5))
  return commandLines(part)
}
