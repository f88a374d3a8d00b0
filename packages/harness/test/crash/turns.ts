import { join } from 'node:path'
import { defineTool } from '../../src/core/tools/index.ts'
import type { Context, PluginObject } from '../../src/kernel/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import { sessionProjections } from '../../src/plugins/session-projections/index.ts'
import { createHarness, say } from '../../src/testing/harness.ts'
import type { Task } from './child.ts'
import type { Journal } from './journal.ts'

export interface TurnsHost {
  readonly task: Task
  readonly store: PluginObject
  readonly journal: Journal
  /** Stands still where the program is to be killed. */
  readonly reach: (point: string) => void
}

/** Two turns over the wire, with three calls of a tool. */
export async function runTurns({ task, store, journal, reach }: TurnsHost): Promise<void> {
  const { ctx, agent } = await createHarness()
  const counts = new Map<string, number>()
  const reachNext = (name: string): void => {
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    reach(`${name} ${count}`)
  }
  // Outside the barrier of the store, which is mounted behind it.
  ctx.on('llm/stream', (_options, next) => {
    reachNext('before the barrier of request')
    return next()
  })
  await ctx.plugin(store)
  await ctx.plugin(sessionProjections, { folder: join(task.home, 'projections'), writeEveryEvents: 10 })
  await ctx.plugin(llmOpenAIChat, { env: { DEEPSEEK_BASE_URL: task.url, DEEPSEEK_API_KEY: 'sk-mock' } })
  watchLoop(ctx, journal, reachNext)
  const one = agent('s1', { provider: 'deepseek', model: 'deepseek-flash' })
  for (const prompt of ['go', 'go on']) {
    one.followup(say(prompt))
    reachNext('followup')
    await one.whenIdle()
    journal.confirm(one.session.header, one.session.length)
    reachNext('idle')
  }
}

function watchLoop(ctx: Context, journal: Journal, reachNext: (name: string) => void): void {
  ctx.on('session/event', (_session, event) => {
    const isClaim = event.type === 'agent/inbox/spliced' && (event.data.removedCount ?? 0) > 0
    reachNext(isClaim ? 'claim' : event.type)
  })
  ctx.on('agent/pre-step', async (step, next) => {
    const result = await next()
    reachNext('pre-step')
    await ctx.sessions.flush(step.agent.session)
    reachNext('pre-step flush')
    return result
  })
  ctx.on('llm/stream', (options, next) => {
    const session = options.sessionId === undefined ? undefined : ctx.sessions.get(options.sessionId)
    if (session !== undefined) journal.request(session.header, session.length, options)
    reachNext('dispatch')
    const stream = next()
    return (async function* () {
      for await (const chunk of stream) {
        reachNext('chunk of the wire')
        yield chunk
      }
    })()
  })
  ctx.on('tools/execute', (_execution, next) => {
    reachNext('flushed call')
    return next()
  })
  ctx.tools.register(
    defineTool({
      name: 'work',
      description: 'Works.',
      parameters: {},
      execute(_args, exec) {
        reachNext('body')
        if (exec.agent !== undefined) journal.effect(exec.agent.session.header, exec.callId)
        reachNext('effect')
        return 'worked'
      },
    }),
  )
}
