import { setImmediate as nextTask } from 'node:timers/promises'
import type { GenerateOptions } from '../../src/core/llm/index.ts'
import { turnCursor } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import type { Context, PluginObject } from '../../src/kernel/index.ts'
import { text, toolCalls } from '../../src/plugins/llm-scripted/index.ts'
import { mountPersistence } from '../../src/plugins/persistence/index.ts'
import { createHarness, say } from '../../src/testing/index.ts'
import type { Scenario } from './enumerate.ts'
import type { Machine } from './machine.ts'
import { sameRequest, startedCall } from './witnesses.ts'

/** A point where the log is made sure of before anything goes on; the last one is the wait behind 'turn/end'. */
export type Barrier = 'llm/stream' | 'tools/execute' | 'turn/end'

/** The real loop with a scripted model, on a machine whose store writes at its barriers alone. */
export function loopScenario(without?: Barrier): Scenario {
  return {
    name: 'turns of the loop, with requests and tools',
    async run(machine, random) {
      const calls = ['c1', 'c2', 'c3'].map(id => ({ name: 'work', args: { id }, id }))
      const { ctx, agent } = await createHarness([
        request => sent(machine, session(), request, toolCalls(calls.slice(0, 2))),
        request => sent(machine, session(), request, toolCalls(calls.slice(2))),
        request => sent(machine, session(), request, text('done')),
        request => sent(machine, session(), request, text(`and ${'more '.repeat(random.below(20))}`)),
      ])
      await ctx.plugin(storeOn(machine, without))
      registerWork(ctx, machine)
      const one = agent('s1', { cwd: '/srv/project' } as object)
      const session = (): Session => one.session
      for (const prompt of ['go', 'go on']) {
        one.followup(say(prompt))
        await one.whenIdle()
        // Whoever is told that the turn is over is shown its answer.
        machine.ledger.confirm(one.session.header, one.session.length)
      }
      await ctx.dispose()
    },
  }
}

function storeOn(machine: Machine, without: Barrier | undefined): PluginObject {
  return {
    name: 'store',
    inject: ['sessions'],
    apply(own: Context) {
      const timers = { set: () => 0, clear: () => {} }
      mountPersistence(deaf(own, without), machine.open(), { writeBatchMaxDelayMs: 200, timers })
    },
  }
}

/** The same context, on which the store hears of nothing that it would wait at `without` for. */
function deaf(ctx: Context, without: Barrier | undefined): Context {
  if (without === undefined) return ctx
  return new Proxy(ctx, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      if (key !== 'on') return value.bind(target)
      return (name: string, listener: Listener, ...rest: readonly unknown[]): unknown => {
        if (name === without) return () => {}
        const isTurnEnd = without === 'turn/end' && name === 'session/flush'
        return value.call(target, name, isTurnEnd ? withinTurns(listener) : listener, ...rest)
      }
    },
  })
}

type Listener = (session: Session, ...rest: readonly unknown[]) => unknown

function withinTurns(listener: Listener): Listener {
  return (session, ...rest) =>
    session.fold(turnCursor).openTurn === undefined ? undefined : listener(session, ...rest)
}

/** The request has left; from here on the log must give it again. */
function sent<T>(machine: Machine, session: Session, request: GenerateOptions, answer: T): T {
  machine.ledger.witness(session.header, sameRequest(session.length, request))
  return answer
}

function registerWork(ctx: Context, machine: Machine): void {
  const work = defineTool({
    name: 'work',
    description: 'Works.',
    parameters: { id: { type: 'string', required: true } },
    async execute({ id }, exec) {
      const header = exec.agent?.session.header
      if (header !== undefined) machine.ledger.witness(header, startedCall(id))
      await nextTask()
      return `did ${id}`
    },
  })
  ctx.tools.register(work)
}
