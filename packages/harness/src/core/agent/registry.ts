import type { SessionId } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { AsyncDisposer, Context, Disposer } from '../../kernel/index.ts'
import { Publication } from '../session/index.ts'
import type { Agent, AgentFactory, AgentHandle, CreateAgentOptions, ResumeAgentOptions } from './agent.ts'
import { agentEvents } from './dispatch.ts'
import { AgentError } from './errors.ts'
import { Initiators } from './initiator.ts'

/**
 * The agents that live here, by id.
 *
 * An agent enters silently, is announced once, and leaves: whoever heard 'agent/created' hears 'agent/disposed' too.
 */
export class AgentRegistry extends Service {
  private readonly publication: Publication<SessionId, Agent>
  private readonly owners = new WeakMap<Agent, Agent>()
  private readonly slot: { factory: AgentFactory | undefined } = { factory: undefined }
  private readonly initiators: Initiators

  constructor(ctx: Context) {
    super(ctx, 'agents')
    this.publication = new Publication({
      idOf: agent => agent.id,
      announce: agent => agentEvents(ctx, agent).veto('agent/created', {}),
      disposed: agent => agentEvents(ctx, agent).emit('agent/disposed', {}),
      duplicate: id => new AgentError('AGENT_EXISTS', `agent "${id}" exists already`),
    })
    const { fiber } = ctx
    const initiators = new Initiators(() => fiber.state === 'unloading' || fiber.state === 'disposed')
    this.initiators = initiators
    ctx.effect((): AsyncDisposer => () => initiators.drain(), 'initiators')
  }

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
    const { id, session } = agent
    if (id !== session.id) throw new TypeError(`agent "${id}" has a session of another id, "${session.id}"`)
    const leave = this.publication.enter(agent)
    if (owner === undefined) this.owners.delete(agent)
    else this.owners.set(agent, owner)
    return leave
  }

  /** Emits 'agent/created'; what a listener throws escapes, and the one who entered the agent detaches it then. */
  announce(agent: Agent): void {
    this.publication.announce(agent)
  }

  get(id: SessionId): Agent | undefined {
    return this.publication.get(id)
  }

  /** In the order they entered. */
  list(): Agent[] {
    return this.publication.list()
  }

  /** Those that no other agent made. */
  roots(): Agent[] {
    return this.list().filter(agent => !this.owners.has(agent))
  }

  /** Whether `owner` made the agent in this process; the log's lineage is another matter. */
  isOwnedBy(id: SessionId, owner: Agent): boolean {
    const agent = this.get(id)
    return agent !== undefined && this.owners.get(agent) === owner
  }

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
