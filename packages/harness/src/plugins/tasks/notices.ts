import type { MessageId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { Task } from './service.ts'
import { endSummary, endText } from './texts.ts'

interface Owed {
  /** Turns that notices began since a person last said something. */
  wakes: number
  /** Not yet read, with the task that each is about. */
  readonly pending: Map<MessageId, string>
}

/**
 * Tells owners of the ends of their tasks: a busy one with its next step, an idle one by a turn of its own, but no more
 * than `maxWakes` times until a person says something.
 */
export class Notices {
  readonly #maxWakes: number
  readonly #owed = new WeakMap<Agent, Owed>()

  constructor(ctx: Context, maxWakes: number) {
    this.#maxWakes = maxWakes
    ctx.on('agent/inbox/claimed', ({ agent, message }) => this.#read(agent, message.id), { global: true })
    ctx.on('agent/inbox/discarded', ({ agent, message }) => this.#read(agent, message.id), { global: true })
    ctx.on(
      'agent/inbox/inserted',
      ({ agent, message }) => {
        if (message.source.kind === 'user') this.#of(agent).wakes = 0
      },
      { global: true },
    )
    ctx.on(
      'agent/status',
      ({ agent, status }) => {
        if (status === 'idle') this.#wakeFor(agent)
      },
      { global: true },
    )
  }

  tell(agent: Agent, task: Task): void {
    const message = createUserMessage({
      content: [{ type: 'text', text: endText(task) }],
      source: { kind: 'plugin', plugin: 'tasks', form: 'notice', summary: endSummary(task) },
    })
    const owed = this.#of(agent)
    owed.pending.set(message.id, task.id)
    if (agent.status === 'idle' && this.#mayWake(owed)) agent.steer(message)
    else agent.inject(message)
  }

  /** What the model would read of `task` when it knows already. */
  takeBack(agent: Agent, task: string): void {
    const pending = this.#owed.get(agent)?.pending ?? []
    for (const [id, about] of pending) if (about === task) agent.inbox.remove(id)
  }

  /** What came too late for a turn is worth one of its own. */
  #wakeFor(agent: Agent): void {
    const owed = this.#owed.get(agent)
    const last = agent.inbox.nextStep.findLast(({ id }) => owed?.pending.has(id) === true)
    if (owed === undefined || last === undefined || !this.#mayWake(owed)) return
    const about = owed.pending.get(last.id) ?? ''
    agent.inbox.remove(last.id)
    owed.pending.set(last.id, about)
    agent.steer(last)
  }

  #mayWake(owed: Owed): boolean {
    if (owed.wakes >= this.#maxWakes) return false
    owed.wakes++
    return true
  }

  #read(agent: Agent, id: MessageId): void {
    this.#owed.get(agent)?.pending.delete(id)
  }

  #of(agent: Agent): Owed {
    const owed = this.#owed.get(agent) ?? { wakes: 0, pending: new Map() }
    this.#owed.set(agent, owed)
    return owed
  }
}
