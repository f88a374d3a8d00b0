import type { CallId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { offerTools } from '../../core/prompt/index.ts'
import { scopeTarget } from '../../core/scope/index.ts'
import { endsWithin, joinErrors, MAX_TIMER_DELAY_MS, Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import { TaskError } from './errors.ts'
import { taskHistory } from './history.ts'
import { LiveTask } from './live-task.ts'
import type { TaskFacts } from './live-task.ts'
import { Notices } from './notices.ts'
import type { MovableCall, Task, TaskCursor, TaskRegistry, TaskStart, TaskText, TaskWork } from './service.ts'
import { unknownTaskText } from './texts.ts'

export interface TasksConfig {
  /** Tasks that one owner may have running. */
  readonly maxRunning: number
  /** Turns that ends of tasks may begin before a person says something. */
  readonly maxWakes: number
}

/** Tasks that ended and whose output is still in memory, of each owner. */
const keptEnded = 5
const taskToolNames = ['task_kill', 'task_list', 'task_output'] as const

interface Owned {
  readonly live: Map<string, LiveTask>
  /** Begun and not yet running. */
  starting: number
  /** Set when the owner leaves; resolves when nothing runs any more. */
  left: Promise<void> | undefined
}

/** Tasks of this process; what earlier ones had stands in the logs of the sessions. */
export class Tasks extends Service implements TaskRegistry {
  private readonly own: Context
  private readonly config: TasksConfig
  private readonly owners = new Map<Agent, Owned>()
  private readonly movables = new Map<CallId, MovableCall>()
  private readonly listeners = new Set<(owner: Agent, task: Task) => void>()
  private readonly notices: Notices

  constructor(ctx: Context, config: TasksConfig) {
    super(ctx, 'tasks')
    this.own = ctx
    this.config = config
    this.notices = new Notices(ctx, config.maxWakes)
  }

  async start({ kind, label, owner, callId, run }: TaskStart): Promise<Task> {
    if (!/^[a-z][a-z0-9]*$/.test(kind) || label.trim() === '')
      throw new TaskError('INVALID_TASK', `a task needs a kind and a label, not "${kind}" and "${label}"`)
    const owned = this.ownedBy(owner)
    const { maxRunning } = this.config
    if (runningOf(owned).length + owned.starting >= maxRunning)
      throw new TaskError('TOO_MANY_TASKS', `${maxRunning} tasks are running: end one with task_kill first`)
    owned.starting++
    try {
      const work = await run()
      try {
        return this.begin(owned, { owner, kind, label, callId }, work)
      } catch (error) {
        work.done.catch(() => {})
        work.kill()
        throw error
      }
    } finally {
      owned.starting--
    }
  }

  list(owner: Agent): readonly Task[] {
    const live = this.owners.get(owner)?.live
    return owner.session.fold(taskHistory).tasks.map(task => live?.get(task.id)?.snapshot() ?? past(task))
  }

  get(owner: Agent, id: string): Task {
    const tasks = this.list(owner)
    const task = tasks.find(each => each.id === id)
    if (task !== undefined) return task
    const isAgent = this.own.agents.list().some(agent => agent.id === id)
    throw new TaskError('UNKNOWN_TASK', unknownTaskText(id, tasks, isAgent))
  }

  read(owner: Agent, id: string, cursor?: TaskCursor): TaskText {
    this.get(owner, id)
    return this.liveOf(owner, id)?.read(cursor) ?? { text: '', cursor: [], omittedBytes: 0 }
  }

  readNew(owner: Agent, id: string): string {
    this.get(owner, id)
    return this.liveOf(owner, id)?.readNew() ?? ''
  }

  async wait(
    owner: Agent,
    id: string,
    { ms, signal }: { readonly ms: number; readonly signal?: AbortSignal },
  ): Promise<Task> {
    this.get(owner, id)
    signal?.throwIfAborted()
    const live = this.liveOf(owner, id)
    if (live?.isRunning === true) {
      const aborted = Promise.withResolvers<void>()
      const onAbort = (): void => aborted.resolve()
      signal?.addEventListener('abort', onAbort, { once: true })
      await endsWithin(Promise.race([live.ended, aborted.promise]), Math.min(ms, MAX_TIMER_DELAY_MS))
      signal?.removeEventListener('abort', onAbort)
      signal?.throwIfAborted()
    }
    return live?.snapshot() ?? this.get(owner, id)
  }

  async kill(owner: Agent, id: string, reason?: string): Promise<Task> {
    const task = this.get(owner, id)
    const live = this.liveOf(owner, id)
    if (live?.isRunning !== true) return task
    await live.kill(reason)
    return live.snapshot()
  }

  attend(owner: Agent, id: string): Disposer {
    this.notices.takeBack(owner, id)
    const live = this.liveOf(owner, id)
    if (live === undefined) return () => {}
    live.attending++
    return () => void live.attending--
  }

  onTaskDone(listener: (owner: Agent, task: Task) => void): Disposer {
    const { listeners } = this
    return this.ctx.effect(() => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    }, 'ends of tasks')
  }

  movable(call: MovableCall): Disposer {
    const { movables } = this
    movables.set(call.callId, call)
    return () => {
      if (movables.get(call.callId) === call) movables.delete(call.callId)
    }
  }

  movableCalls(owner: Agent): readonly CallId[] {
    return [...this.movables.values()].filter(call => call.owner === owner).map(({ callId }) => callId)
  }

  async background(owner: Agent, callId: CallId): Promise<Task> {
    const call = this.movables.get(callId)
    if (call?.owner !== owner)
      throw new TaskError('NOT_MOVABLE', `no call "${callId}" is running that can go on in the background`)
    return call.move()
  }

  /** While the log can still be written: the tasks of `owner` are lost, and end. */
  leave(owner: Agent): Promise<void> {
    const owned = this.owners.get(owner)
    if (owned === undefined) return Promise.resolve()
    this.owners.delete(owner)
    owned.left = Promise.allSettled(runningOf(owned).map(task => task.lose())).then(() => {})
    return owned.left
  }

  async close(): Promise<void> {
    const ends = await Promise.allSettled([...this.owners.keys()].map(owner => this.leave(owner)))
    const failed = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []))
    if (failed.length > 0) throw joinErrors(failed, 'tasks could not be ended')
  }

  /** From here on the log knows of it. */
  private begin(owned: Owned, facts: Omit<TaskFacts, 'id'>, work: TaskWork): Task {
    const { owner, kind } = facts
    if (owned.left !== undefined) throw new TaskError('TASKS_CLOSED', `agent "${owner.id}" has ended`)
    const id = `${kind}-${(owner.session.fold(taskHistory).counts[kind] ?? 0) + 1}`
    offerTools(owner.session, taskToolNames)
    const report = (error: unknown): void => this.own.fiber.report(error, `task ${id}`)
    const task = new LiveTask({ ...facts, id }, work, report)
    owned.live.set(id, task)
    task.ended.then(() => this.ended(owned, task)).catch(report)
    const snapshot = task.snapshot()
    this.announce(owner, snapshot)
    return snapshot
  }

  private ownedBy(owner: Agent): Owned {
    const known = this.owners.get(owner)
    if (known !== undefined) return known
    if (this.own.agents.get(owner.id) !== owner)
      throw new TaskError('TASKS_CLOSED', `agent "${owner.id}" has ended`)
    const owned: Owned = { live: new Map(), starting: 0, left: undefined }
    this.owners.set(owner, owned)
    owner.ctx.effect(() => () => owned.left, 'tasks')
    return owned
  }

  private liveOf(owner: Agent, id: string): LiveTask | undefined {
    return this.owners.get(owner)?.live.get(id)
  }

  private ended(owned: Owned, task: LiveTask): void {
    const { owner } = task
    const snapshot = task.snapshot()
    this.announce(owner, snapshot)
    const over = [...owned.live.values()].filter(each => !each.isRunning)
    for (const { id } of over.slice(0, -keptEnded)) owned.live.delete(id)
    if (task.attending === 0 && owned.left === undefined) this.notices.tell(owner, snapshot)
    for (const listener of this.listeners) {
      try {
        listener(owner, snapshot)
      } catch (error) {
        this.own.fiber.report(error, 'ends of tasks')
      }
    }
  }

  private announce(agent: Agent, task: Task): void {
    this.own.emit(scopeTarget(agent), 'tasks/change', { agent, task })
  }
}

function runningOf({ live }: Owned): LiveTask[] {
  return [...live.values()].filter(task => task.isRunning)
}

/** What no process here runs any more, whatever its log says. */
function past(task: Task): Task {
  return task.status === 'running' ? { ...task, status: 'lost' } : task
}
