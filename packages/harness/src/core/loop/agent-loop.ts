import type { SessionHeader, SessionId } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { ConfigSchema, Context, Emit } from '../../kernel/index.ts'
import { inboxFold } from '../agent/index.ts'
import type {
  Agent,
  AgentFactory,
  AgentHandle,
  AgentOptions,
  CreateAgentOptions,
  ResumeAgentOptions,
} from '../agent/index.ts'
import type { Session, SessionPreparation } from '../session/index.ts'
import { configSchema } from './config.ts'
import type { AgentLoopConfig, CheckedLoopConfig } from './config.ts'
import { startConfigured } from './configured.ts'
import { LoopError } from './errors.ts'
import { Life } from './life.ts'
import type { LifeParts, LifePlace } from './life.ts'
import { Lease } from './lease.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    agentLoop: AgentLoop
  }

  interface Events {
    /** A configured agent did not start; everything else goes on without it. */
    'agent-loop/config-start-failed': Emit<[{ readonly sessionId: SessionId; readonly error: unknown }]>
  }
}

interface MutableLimits {
  maxParallelToolCalls: number
}

/** Makes agents and drives them: input becomes turns, turns become steps, steps become requests and tool calls. */
export class AgentLoop extends Service implements AgentFactory {
  static readonly inject = ['llm', 'sessions', 'systemPrompt', 'tools', 'agents']

  static get Config(): ConfigSchema<AgentLoopConfig | undefined, CheckedLoopConfig> {
    return configSchema()
  }

  private readonly limits: MutableLimits
  private readonly place: LifePlace

  constructor(ctx: Context, config: CheckedLoopConfig) {
    super(ctx, 'agentLoop')
    this.limits = { maxParallelToolCalls: config.maxParallelToolCalls }
    this.place = { ctx, limits: this.limits, lives: new Set() }
    ctx.agents.setFactory(this)
    registerVariables(ctx)
    startConfigured(this.place, this, config.agents)
  }

  /** How many tool bodies of one agent may run at once; a change counts from the next group of calls on. */
  get maxParallelToolCalls(): number {
    return this.limits.maxParallelToolCalls
  }

  setMaxParallelToolCalls(count: number): void {
    if (!Number.isSafeInteger(count) || count < 1)
      throw new RangeError(`maxParallelToolCalls is ${count}, not a positive whole number`)
    this.limits.maxParallelToolCalls = count
  }

  /** An agent without set-up, at once; it ends with the plugin that asks for it. */
  create(id?: SessionId, options: AgentOptions = {}, meta?: CreateAgentOptions['meta']): Agent {
    const { ctx } = this
    const session = this.place.ctx.sessions.prepare(id, meta === undefined ? {} : { meta })
    const life = new Life(this.place, { session, owner: ctx, options, source: 'startup' })
    try {
      life.publish()
    } catch (error) {
      life.end().catch((failure: unknown) => ctx.fiber.report(failure, `agent ${session.id}`))
      throw error
    }
    return life.agent
  }

  /** Rejects with what `setup`, a listener or the signal threw; nothing of the agent is left then. */
  async createAgent(owner: Context, options: CreateAgentOptions): Promise<AgentHandle> {
    const { sessionId, meta, seed, agentOptions = {}, signal, setup } = options
    const session = this.place.ctx.sessions.prepare(sessionId, {
      ...(seed === undefined ? {} : { seed }),
      ...(meta === undefined ? {} : { meta }),
    })
    const parts: LifeParts = { session, owner, options: agentOptions, source: 'startup', signal }
    return this.compose(parts, setup)
  }

  /** Rejects with NO_PERSISTENCE where nothing keeps sessions. What waits in the inbox stays there. */
  async resume(owner: Context, options: ResumeAgentOptions): Promise<AgentHandle> {
    const { resumeSessionId: id, agentOptions = {}, signal, setup } = options
    const persistence = this.place.ctx.get('sessionPersistence')
    if (persistence === undefined)
      throw new LoopError('NO_PERSISTENCE', `session "${id}" cannot be resumed: nothing keeps sessions`)
    const waiting = new Lease(id, [this.place.ctx, owner], { signal })
    let prepared: SessionPreparation
    try {
      prepared = await waiting.race(
        () => persistence.prepare(id, waiting.signal),
        late => late[Symbol.dispose](),
      )
    } finally {
      waiting.release()
    }
    const { session } = prepared
    const notices = [...(prepared.notices ?? []), ...flagNotices(session), ...inboxNotices(session)]
    const release = (): void => prepared[Symbol.dispose]()
    return this.compose(
      { session, owner, options: agentOptions, source: 'resume', signal, notices, release },
      setup,
    )
  }

  private async compose(parts: LifeParts, setup: CreateAgentOptions['setup']): Promise<AgentHandle> {
    const life = this.begin(parts)
    try {
      await life.compose(setup)
      return life
    } catch (error) {
      await life
        .end()
        .catch((failure: unknown) => this.place.ctx.fiber.report(failure, `agent ${life.agent.id}`))
      throw error
    }
  }

  private begin(parts: LifeParts): Life {
    try {
      return new Life(this.place, parts)
    } catch (error) {
      parts.release?.()
      throw error
    }
  }
}

/** One sentence for each type of which events are passed over. */
function flagNotices({ flagged }: Session): string[] {
  return [...Map.groupBy(flagged, ({ type }) => type)].flatMap(([type, [first, ...more]]) => {
    if (first === undefined) return []
    const count = more.length === 0 ? `event ${first.seq} is` : `${more.length + 1} events "${type}" are`
    return [`${count} passed over: ${first.reason}`]
  })
}

function inboxNotices(session: Session): string[] {
  const { misfit } = session.fold(inboxFold)
  return misfit === undefined ? [] : [`what had waited to be read is not known any more: ${misfit.message}`]
}

function registerVariables(ctx: Context): void {
  const { systemPrompt } = ctx
  const headerOf = (agent: Agent | undefined): SessionHeader | undefined => agent?.session.header
  const routeOf = (agent: Agent | undefined): AgentOptions | undefined =>
    agent?.session.requestHeader()?.config ?? agent?.options
  systemPrompt.variable('provider', ({ agent }) => routeOf(agent)?.provider)
  systemPrompt.variable('model', ({ agent }) => routeOf(agent)?.model)
  systemPrompt.variable('cwd', ({ agent }) => headerOf(agent)?.cwd)
}
