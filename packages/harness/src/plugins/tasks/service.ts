import type { CallId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Disposer, Emit } from '../../kernel/index.ts'
import type { TaskEnding } from './events.ts'

export type TaskStatus = 'running' | TaskEnding

/** One piece of work beside the turns of its owner, as it is now. */
export interface Task {
  /** `<kind>-<n>`, the same after a restart and never another's in its session. */
  readonly id: string
  readonly kind: string
  readonly label: string
  readonly status: TaskStatus
  /** How it ended, in words. */
  readonly detail?: string
  readonly callId?: CallId
  /** Epoch ms. */
  readonly startedAt: number
  readonly endedAt?: number
  /** What it printed in all; kept as `artifact` once it has ended. */
  readonly output?: { readonly bytes: number; readonly artifact?: string }
}

/** How far a reader has come: an offset for each stream. */
export type TaskCursor = readonly number[]

export interface TaskText {
  readonly text: string
  readonly cursor: TaskCursor
  /** Bytes that came after the last reading and are gone. */
  readonly omittedBytes: number
}

/** What a task prints. Reading takes nothing away: every reader keeps its own cursor. */
export interface TaskOutput {
  readonly totalBytes: number
  /** What came since `cursor`, undefined = since the beginning; harmless to show. */
  read(cursor: TaskCursor | undefined): TaskText
}

/** The work behind a task. */
export interface TaskWork {
  /** Settles when nothing of it runs any more; a rejection is a failure. */
  readonly done: Promise<{ readonly status: 'completed' | 'failed' | 'killed'; readonly detail?: string }>
  readonly output?: TaskOutput
  /** Makes `done` settle soon. */
  kill(): void
}

export interface TaskStart {
  /** A word in lower case; tells what the ids begin with. */
  readonly kind: string
  readonly label: string
  /** Nobody else sees the task, and it ends with its owner at the latest. */
  readonly owner: Agent
  readonly callId?: CallId
  /** Begins the work; not called where the task may not start. */
  run(): TaskWork | Promise<TaskWork>
}

/** A call that runs and could go on as a task. */
export interface MovableCall {
  readonly owner: Agent
  readonly callId: CallId
  /** Makes a task of it, whereupon the call gives its result. */
  move(): Promise<Task>
}

/** Work that goes on while turns come and go, as `ctx.tasks`. An owner sees and touches its own alone. */
export interface TaskRegistry {
  /** Throws TOO_MANY_TASKS, INVALID_TASK or TASKS_CLOSED before anything runs. */
  start(start: TaskStart): Promise<Task>
  /** In the order of their start, those of earlier processes included as far as they are remembered. */
  list(owner: Agent): readonly Task[]
  /** Throws UNKNOWN_TASK. */
  get(owner: Agent, id: string): Task
  /** What it printed since `cursor`; of a task that ended long ago only its artifact is left. Throws UNKNOWN_TASK. */
  read(owner: Agent, id: string, cursor?: TaskCursor): TaskText
  /** What its model has not read yet; the next time it goes on behind that. Nobody else's reading counts. */
  readNew(owner: Agent, id: string): string
  /** The task when it has ended, or as it is after `ms`. Rejects with the reason of `signal`. */
  wait(
    owner: Agent,
    id: string,
    options: { readonly ms: number; readonly signal?: AbortSignal },
  ): Promise<Task>
  /** Ends a task and waits for that; one that has ended stays as it is. `reason` is told to whoever reads of it. */
  kill(owner: Agent, id: string, reason?: string): Promise<Task>
  /**
   * The model is looking at the task itself: until the function it gives is called the model is not told of its end, and
   * what it was told and has not read is taken back.
   */
  attend(owner: Agent, id: string): Disposer
  /** Hears of each end as long as the caller is there. */
  onTaskDone(listener: (owner: Agent, task: Task) => void): Disposer
  /** Lets surfaces move a call to the background until the function it gives is called. */
  movable(call: MovableCall): Disposer
  /** The calls of `owner` that `background` can move. */
  movableCalls(owner: Agent): readonly CallId[]
  /** Moves a running call to the background. Throws NOT_MOVABLE. */
  background(owner: Agent, callId: CallId): Promise<Task>
}

declare module '../../kernel/index.ts' {
  interface Services {
    tasks: TaskRegistry
  }

  interface Events {
    /** A task began or ended; for those who show them. */
    'tasks/change': Emit<[{ readonly agent: Agent; readonly task: Task }]>
  }
}
