import type { Agent } from '../../core/agent/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { shownOutput } from '../pty/index.ts'
import type { PtySendOperation, PtySendResult, PtySession, PtySessions } from '../pty/index.ts'
import { exitedText, newShellText, stuckText, timedOutText, waitingText } from './texts.ts'

export interface ShellLimits {
  readonly backendType: string
  readonly timeoutMs: number
  readonly maxOutputBytes: number
}

export interface ShellRun {
  readonly command: string
  /** Of the call, for what was granted to that. */
  readonly token: symbol
  readonly signal: AbortSignal
}

export interface ShellOutcome {
  readonly output: string
  /** What the shell does not print, a line each. */
  readonly notes: readonly string[]
  /** Null where the command has not ended, or took the shell along. */
  readonly exitCode: number | null
  readonly timedOut: boolean
  readonly durationMs: number
}

interface Owned {
  id: string | undefined
  queue: Promise<unknown>
}

interface Opened {
  readonly id: string
  readonly notes: readonly string[]
}

interface Ended extends Opened {
  readonly output: PtySendOperation['output']
  readonly result: PtySendResult
}

/** One shell for each agent, opened with its first command; commands of one agent follow each other. */
export class AgentShells {
  readonly #pty: PtySessions
  readonly #limits: ShellLimits
  readonly #owned = new Map<Agent, Owned>()

  constructor(pty: PtySessions, limits: ShellLimits) {
    this.#pty = pty
    this.#limits = limits
  }

  async run(owner: Agent, run: ShellRun): Promise<ShellOutcome> {
    const owned = this.#owned.get(owner) ?? { id: undefined, queue: Promise.resolve() }
    this.#owned.set(owner, owned)
    const outcome = owned.queue.then(() => this.#runNow(owner, owned, run))
    owned.queue = outcome.catch(() => {})
    return await outcome
  }

  forget(owner: Agent): void {
    this.#owned.delete(owner)
  }

  async close(): Promise<void> {
    const ends = [...this.#owned].map(([owner, owned]) => this.#end(owner, owned, 'the tool bash is gone'))
    this.#owned.clear()
    await Promise.all(ends)
  }

  async #runNow(owner: Agent, owned: Owned, run: ShellRun): Promise<ShellOutcome> {
    const startedAt = performance.now()
    const opened = await this.#open(owner, owned, run)
    const first = await this.#send(owner, owned, opened, run)
    if (first.result.isStarted) return await this.#outcome(owner, owned, first, startedAt)
    await this.#end(owner, owned, stuckText)
    owned.id = undefined
    const again = await this.#open(owner, owned, run)
    const notes = [newShellText(stuckText), ...again.notes]
    return await this.#outcome(
      owner,
      owned,
      await this.#send(owner, owned, { id: again.id, notes }, run),
      startedAt,
    )
  }

  async #open(owner: Agent, owned: Owned, { token, signal }: ShellRun): Promise<Opened> {
    const known = this.#known(owner, owned)
    if (typeof known === 'object') return { id: known.sessionId, notes: [] }
    const { sessionId, notices } = await this.#pty.spawn(
      owner,
      { type: this.#limits.backendType, token },
      signal,
    )
    owned.id = sessionId
    const why = known === undefined ? [] : [newShellText(known)]
    return { id: sessionId, notes: [...why, ...notices.map(notice => `[${notice}]`)] }
  }

  /** The shell that is there, or why the one that was there is gone. */
  #known(owner: Agent, owned: Owned): PtySession | string | undefined {
    if (owned.id === undefined) return undefined
    try {
      const session = this.#pty.get(owner, owned.id)
      return session.status.state === 'running' ? session : 'the last one has ended'
    } catch (error) {
      return messageOf(error)
    }
  }

  async #send(
    owner: Agent,
    owned: Owned,
    { id, notes }: Opened,
    { command, signal }: ShellRun,
  ): Promise<Ended> {
    const { timeoutMs } = this.#limits
    const request = { text: command, submit: true, form: 'run', timeoutMs, signal } as const
    const { result, output } = this.#pty.startSend(owner, id, request)
    const ended = await result
    if (signal.aborted) await this.#end(owner, owned, 'its last command was cancelled')
    signal.throwIfAborted()
    return { id, notes, output, result: ended }
  }

  async #outcome(
    owner: Agent,
    owned: Owned,
    { id, notes, output, result }: Ended,
    startedAt: number,
  ): Promise<ShellOutcome> {
    const durationMs = Math.round(performance.now() - startedAt)
    const shown = await shownOutput(output, this.#limits.maxOutputBytes, owner)
    const timedOut = result.wait === 'timeout'
    if (timedOut) await this.#end(owner, owned, 'its last command timed out')
    if (result.wait === 'session_exit') await this.#end(owner, owned, 'the last one has ended')
    if (timedOut || result.wait === 'session_exit') owned.id = undefined
    const end = endText(result, id, this.#limits.timeoutMs)
    return {
      output: shown,
      notes: [...notes, ...(end === undefined ? [] : [end])],
      exitCode: result.exitCode ?? null,
      timedOut,
      durationMs,
    }
  }

  async #end(owner: Agent, owned: Owned, reason: string): Promise<void> {
    const { id } = owned
    if (id === undefined) return
    // It may be gone already, with its agent or its mode.
    await this.#pty.kill(owner, id, reason).catch(() => {})
  }
}

function endText(
  { wait, exitCode, status }: PtySendResult,
  id: string,
  timeoutMs: number,
): string | undefined {
  if (wait === 'timeout') return timedOutText(timeoutMs)
  if (status.state === 'exited') return exitedText(status.exitCode, status.signal)
  if (exitCode === undefined) return waitingText(id)
  return exitCode === 0 ? undefined : `[exit code: ${exitCode}]`
}
