import type { SessionId } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { AsyncDisposer, Context, Disposer } from '../../kernel/index.ts'
import type { Agent, AgentFactory, AgentHandle, CreateAgentOptions, ResumeAgentOptions } from './agent.ts'
import { agentEvents } from './dispatch.ts'
import { AgentError } from './errors.ts'
import { Initiators } from './initiator.ts'

interface Entry {
  readonly agent: Agent
  readonly owner: Agent | undefined
  phase: 'silent' | 'announcing' | 'announced' | 'detached'
  /** Detaching was asked for while the announcement ran. */
  leaving: boolean
}

/**
 * The agents that live here, by id.
 *
 * An agent enters silently, is announced once, and leaves: whoever heard 'agent/created' hears 'agent/disposed' too.
 */
export class AgentRegistry extends Service {
  private readonly entries = new Map<SessionId, Entry>()
  private readonly slot: { factory: AgentFactory | undefined } = { factory: undefined }
  private readonly initiators: Initiators

  constructor(ctx: Context) {
    super(ctx, 'agents')
    const { fiber } = ctx
    const initiators = new Initiators(() => fiber.state === 'unloading' || fiber.state === 'disposed')
    this.initiators = initiators
    ctx.effect((): AsyncDisposer => () => initiators.drain(), 'initiators')
  }

  // ── making agents ────────────────────────────────────────────────────────

  /** There is one factory; it goes with the plugin that set it. */
  setFactory(factory: AgentFactory): Disposer {
    const { slot } = this
    return this.ctx.effect(() => {
      if (slot.factory !== undefined)
        throw new AgentError('DUPLICATE_FACTORY', 'an agent factory is registered already')
      slot.factory = factory
      return () => {
        if (slot.factory === factory) slot.factory = undefined
      }
    }, 'agent factory')
  }

  /** The agent belongs to the caller: it ends, at the latest, with the plugin that asked for it. */
  async create(options: CreateAgentOptions): Promise<AgentHandle> {
    return this.factory().createAgent(this.ctx, options)
  }

  async resume(options: ResumeAgentOptions): Promise<AgentHandle> {
    return this.factory().resume(this.ctx, options)
  }

  private factory(): AgentFactory {
    const { factory } = this.slot
    if (factory === undefined) throw new AgentError('NO_FACTORY', 'no agent factory registered')
    return factory
  }

  // ── publication ──────────────────────────────────────────────────────────

  /** Enters and announces an agent that somebody else drives. */
  register(agent: Agent): Disposer {
    return this.ctx.effect(() => {
      const detach = this.enter(agent, this.ctx.agent)
      try {
        this.announce(agent)
      } catch (error) {
        detach()
        throw error
      }
      return detach
    }, `agent ${agent.id}`)
  }

  /** Makes the agent findable, without a sound. What it gives takes exactly this entry away again, once. */
  enter(agent: Agent, owner?: Agent): Disposer {
    const { id } = agent
    if (id !== agent.session.id)
      throw new TypeError(`agent "${id}" has a session of another id, "${agent.session.id}"`)
    if (this.entries.has(id)) throw new AgentError('AGENT_EXISTS', `agent "${id}" exists already`)
    const entry: Entry = { agent, owner, phase: 'silent', leaving: false }
    this.entries.set(id, entry)
    return () => this.detach(entry)
  }

  /** Emits 'agent/created'; what a listener throws escapes, and the one who entered the agent detaches it then. */
  announce(agent: Agent): void {
    const entry = this.entries.get(agent.id)
    if (entry?.agent !== agent) throw new TypeError(`agent "${agent.id}" has not entered`)
    if (entry.phase !== 'silent') throw new TypeError(`agent "${agent.id}" was announced before`)
    entry.phase = 'announcing'
    try {
      agentEvents(this.ctx, agent).veto('agent/created', {})
    } finally {
      entry.phase = 'announced'
      if (entry.leaving) this.detach(entry)
    }
  }

  private detach(entry: Entry): void {
    if (entry.phase === 'detached') return
    if (entry.phase === 'announcing') {
      entry.leaving = true
      return
    }
    const wasAnnounced = entry.phase === 'announced'
    entry.phase = 'detached'
    const { agent } = entry
    if (this.entries.get(agent.id) === entry) this.entries.delete(agent.id)
    if (wasAnnounced) agentEvents(this.ctx, agent).emit('agent/disposed', {})
  }

  // ── looking up ───────────────────────────────────────────────────────────

  get(id: SessionId): Agent | undefined {
    return this.entries.get(id)?.agent
  }

  /** In the order they entered. */
  list(): Agent[] {
    return [...this.entries.values()].map(entry => entry.agent)
  }

  /** Those that no other agent made. */
  roots(): Agent[] {
    return [...this.entries.values()].filter(entry => entry.owner === undefined).map(entry => entry.agent)
  }

  /** Whether `owner` made the agent in this process; the log's lineage is another matter. */
  isOwnedBy(id: SessionId, owner: Agent): boolean {
    return this.entries.get(id)?.owner === owner
  }

  // ── attribution ──────────────────────────────────────────────────────────

  /** On whose behalf this code runs; says neither that the agent lives nor that it may do anything. */
  currentInitiator(): Agent | undefined {
    return this.initiators.current
  }

  requireInitiator(): Agent {
    const agent = this.initiators.current
    if (agent === undefined) throw new AgentError('NO_INITIATOR', 'this runs on behalf of no agent')
    return agent
  }

  /** Gives exactly what `operation` gives. Throws REGISTRY_ENDED once the registry is being disposed. */
  withInitiator<T>(agent: Agent, operation: () => T): T {
    return this.initiators.run(agent, operation)
  }

  withoutInitiator<T>(operation: () => T): T {
    return this.initiators.run(undefined, operation)
  }

  /** Whether this code is part of unfinished work of `agent`, at any depth: waiting for its end would be for ever. */
  isInside(agent: Agent): boolean {
    return this.initiators.isInside(agent)
  }
}
