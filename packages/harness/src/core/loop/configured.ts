import { randomUUID } from 'node:crypto'
import { SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type { AgentFactory, AgentOptions } from '../agent/index.ts'
import type { ConfiguredAgent } from './config.ts'
import type { LifePlace } from './life.ts'

/** Starts the agents of the configuration, each on its own: one that fails is reported, and the others go on. */
export function startConfigured(
  place: LifePlace,
  factory: AgentFactory,
  agents: readonly ConfiguredAgent[],
): void {
  const { ctx } = place
  for (const agent of agents) {
    const id = SessionId(agent.resumeSessionId ?? agent.sessionId ?? `${agent.id}-session-${randomUUID()}`)
    const start = (owner: Context): Promise<void> =>
      attempt(ctx, id, () => startOne({ place, factory, owner, agent, id }))
    // Plugins that are mounted right behind the loop are to be there already.
    if (agent.resumeSessionId === undefined) void Promise.resolve().then(() => start(ctx))
    else ctx.inject(['sessionPersistence'], start)
  }
}

async function attempt(ctx: Context, sessionId: SessionId, start: () => Promise<void>): Promise<void> {
  const isEnding = (): boolean => ctx.fiber.state === 'unloading' || ctx.fiber.state === 'disposed'
  if (isEnding()) return
  try {
    await start()
  } catch (error) {
    if (isEnding()) return
    ctx.fiber.report(error, `configured agent "${sessionId}"`)
    ctx.emit('agent-loop/config-start-failed', { sessionId, error })
  }
}

interface Start {
  readonly place: LifePlace
  readonly factory: AgentFactory
  readonly owner: Context
  readonly agent: ConfiguredAgent
  readonly id: SessionId
}

async function startOne({ place, factory, owner, agent, id }: Start): Promise<void> {
  const { provider, model, maxTokens, cwd } = agent
  const agentOptions: AgentOptions = {
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  }
  await ended(place, id)
  if (agent.resumeSessionId !== undefined || (agent.sessionId !== undefined && (await isStored(owner, id)))) {
    await factory.resume(owner, { resumeSessionId: id, agentOptions })
    return
  }
  await factory.createAgent(owner, {
    sessionId: id,
    agentOptions,
    ...(cwd === undefined ? {} : { meta: { cwd } }),
  })
}

/** An earlier life of the session may still be on its way out. */
async function ended({ lives }: LifePlace, id: SessionId): Promise<void> {
  for (const life of lives) if (life.agent.id === id && life.isEnding) await life.end().catch(() => {})
}

async function isStored(ctx: Context, id: SessionId): Promise<boolean> {
  const rows = await ctx.get('sessionPersistence')?.list()
  return rows?.some(row => row.id === id) ?? false
}
