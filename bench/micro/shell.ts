import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { CallId, SessionId } from '@dsh/protocol'
import { bash } from '@dsh/harness/plugins/bash'
import { fs } from '@dsh/harness/plugins/fs'
import { sandbox } from '@dsh/harness/plugins/sandbox'
import { sandboxShells } from '@dsh/harness/plugins/sandbox-shells'
import { subprocess } from '@dsh/harness/plugins/subprocess'
import { tasks } from '@dsh/harness/plugins/tasks'
import { createHarness } from '@dsh/harness/testing'
import { report } from '../figure.ts'
import { medianOf } from '../measure.ts'

type Argv = readonly [program: string, ...args: string[]]

const warmups = 10
const rounds = 60
const cwd = mkdtempSync('/var/tmp/dsh-bench-shell-')
const command: Argv = ['bash', '-c', 'true']

async function world(kind: 'bare' | 'confined' | 'shared') {
  const { ctx } = await createHarness()
  await ctx.plugin(fs)
  if (kind !== 'bare') await ctx.plugin(sandbox)
  await ctx.plugin(subprocess)
  if (kind === 'shared') await ctx.plugin(sandboxShells)
  await ctx.plugin(tasks)
  await ctx.plugin(bash)
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd } })
  let calls = 0
  const call = async (): Promise<void> => {
    const callId = CallId(`c${++calls}`)
    const { signal } = new AbortController()
    const args = { command: 'true', description: 'nothing' }
    await ctx.tools.execute({ callId, name: 'bash', arguments: args, signal, agent })
  }
  return { ctx, agent, call }
}

/** Nothing but the processes themselves. */
async function bare([program, ...args]: Argv): Promise<void> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  await once(child, 'close')
}

const plain = await world('bare')
const confined = await world('confined')
const shared = await world('shared')
const { isReady } = await confined.ctx.sandbox.readiness()
const policy = await confined.ctx.sandboxPolicy.resolve({ session: confined.agent.session })
const wrapped = isReady ? (await confined.ctx.sandbox.confine(command, policy)).argv : command

// In turns, and in an order that changes, so that whatever else happens falls on all of them alike.
const steps = {
  bare: () => bare(command),
  tool: plain.call,
  ...(isReady && { wrapped: () => bare(wrapped), sandboxed: confined.call, shared: shared.call }),
}
const times = new Map<string, number[]>()
for (let round = -warmups; round < rounds; round++) {
  const order = Object.entries(steps).toSorted(() => Math.random() - 0.5)
  for (const [name, step] of order) {
    const before = performance.now()
    await step()
    if (round >= 0) times.set(name, [...(times.get(name) ?? []), performance.now() - before])
  }
}
await plain.ctx.dispose()
await confined.ctx.dispose()
await shared.ctx.dispose()
rmSync(cwd, { recursive: true })

const median = (name: keyof typeof steps): number => medianOf(times.get(name) ?? [])
const budget = median('bare') * 1.5
const tell = (name: string, value: number, most?: number): void =>
  report({ name, value, unit: 'ms', of: 'wall', ...(most !== undefined && { budget: most }) })
tell('bare spawn of bash -c true', median('bare'))
tell('the tool bash with true', median('tool'), budget)
if (isReady) {
  tell('bare spawn of bash -c true in the sandbox', median('wrapped'))
  tell(
    'the tool bash with true in a sandbox of its own',
    median('sandboxed'),
    budget + median('wrapped') - median('bare'),
  )
  tell('the tool bash with true in a sandbox that stands by', median('shared'), budget)
}
