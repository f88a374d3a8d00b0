import { isAbsolute, relative } from 'node:path'
import { changedFiles } from '@dsh/harness/plugins/fs'
import type {} from '@dsh/harness/plugins/retry/events'
import { textOf } from '@dsh/protocol'
import type { JsonValue, LlmFailure, SessionEvent, TurnEndReason } from '@dsh/protocol'
import { duration } from './text.ts'

/** One thing a person is told of a session, in the order it happened. */
export type Entry =
  | { readonly kind: 'prompt'; readonly text: string }
  /** What the model said; `isLast` where no call goes with it. */
  | { readonly kind: 'answer'; readonly text: string; readonly isLast: boolean }
  | ToolEntry
  /** A request failed and will be sent again after `delayMs`. */
  | { readonly kind: 'retry'; readonly failure: LlmFailure; readonly delayMs: number; readonly count: string }
  /** What a plugin says in the conversation. */
  | { readonly kind: 'notice'; readonly text: string }
  /** A turn that did not just complete. */
  | { readonly kind: 'end'; readonly reason: TurnEndReason }

export interface ToolEntry {
  readonly kind: 'tool'
  readonly name: string
  /** What the call is about: the command, the file, the pattern. */
  readonly subject: string
  /** Absent where a crash left nothing to tell it. */
  readonly ms?: number
  /** How a command ended: `exit 1`, `killed by SIGTERM`, `timed out`. */
  readonly exit?: string
  /** Why the call failed. */
  readonly problem?: string
  /** The result as the model sees it. */
  readonly output: string
  /** Files that the call wrote, relative to the session's folder where they are below it. */
  readonly changed: readonly string[]
}

/** How long it took and how it ended, on one line. */
export function factsOf({ ms, exit, problem }: ToolEntry): string {
  return [ms === undefined ? undefined : duration(ms), exit, problem]
    .filter(fact => fact !== undefined)
    .join(', ')
}

export function hasFailed({ exit, problem }: ToolEntry): boolean {
  return problem !== undefined || (exit !== undefined && exit !== 'exit 0')
}

/** Reads a session's events in order and gives what each adds for a person; keeps only what is still open. */
export class Transcript {
  readonly #cwd: string | undefined
  readonly #calls = new Map<string, { readonly name: string; readonly args: unknown; since: number }>()

  constructor(cwd: string | undefined) {
    this.#cwd = cwd
  }

  next(event: SessionEvent): Entry | undefined {
    switch (event.type) {
      case 'user/message': {
        const { source, content } = event.data
        if (source.kind === 'user') return { kind: 'prompt', text: textOf(content) }
        return source.kind === 'plugin' && source.form === 'notice'
          ? { kind: 'notice', text: source.summary }
          : undefined
      }
      case 'assistant/message': {
        const { content } = event.data.message
        const text = textOf(content)
        const isLast = !content.some(({ type }) => type === 'tool-call')
        return text.trim() === '' ? undefined : { kind: 'answer', text, isLast }
      }
      case 'tool/call': {
        const { callId, name } = event.data
        this.#calls.set(callId, { name, args: parsed(event.data), since: event.time })
        return undefined
      }
      case 'tool/start': {
        const call = this.#calls.get(event.data.callId)
        if (call !== undefined) call.since = event.time
        return undefined
      }
      case 'tool/result':
        return this.#toolEntry(event)
      case 'llm/retry': {
        const { failure, delayMs, retry, maxRetries } = event.data
        return {
          kind: 'retry',
          failure,
          delayMs,
          count: maxRetries === undefined ? `${retry}` : `${retry} of ${maxRetries}`,
        }
      }
      case 'turn/end':
        return event.data.reason.kind === 'completed' ? undefined : { kind: 'end', reason: event.data.reason }
      default:
        return undefined
    }
  }

  #toolEntry(event: SessionEvent<'tool/result'>): ToolEntry {
    const { data, time } = event
    const [{ toolCallId, content, isError }] = data.message.content
    const call = this.#calls.get(toolCallId) ?? { name: 'tool', args: undefined, since: time }
    this.#calls.delete(toolCallId)
    const output = textOf(content)
    const exit = exitOf(data.meta)
    return {
      kind: 'tool',
      name: call.name,
      subject: this.subjectOf(call.args),
      ...(wasCutOff(data.error?.code) ? {} : { ms: time - call.since }),
      output,
      changed: changedFiles([event]).map(({ path }) => this.shown(path)),
      ...(exit === undefined ? {} : { exit }),
      ...(isError === true ? { problem: problemOf(data.error?.code) } : {}),
    }
  }

  /** What a call with these arguments is about; empty where they do not say. */
  subjectOf(args: unknown): string {
    for (const key of subjectKeys) {
      const value = field(args, key)
      if (value !== undefined) return key.endsWith('path') ? this.shown(value) : value
    }
    return ''
  }

  /** A path as a person reads it: below the session's folder without that folder. */
  shown(path: string): string {
    if (this.#cwd === undefined || !isAbsolute(path)) return path
    const below = relative(this.#cwd, path)
    return below === '' ? '.' : below.startsWith('..') ? path : below
  }
}

const subjectKeys = ['command', 'file_path', 'pattern', 'query', 'path', 'url', 'name'] as const

function field(args: unknown, key: string): string | undefined {
  const value = typeof args === 'object' && args !== null ? (args as Record<string, unknown>)[key] : undefined
  return typeof value === 'string' ? value : undefined
}

/** From what a command's result keeps for surfaces; undefined for other results. */
function exitOf(meta: JsonValue | undefined): string | undefined {
  if (typeof meta !== 'object' || meta === null || !('exitCode' in meta)) return undefined
  const { exitCode, signal, timedOut } = meta as Readonly<Record<string, JsonValue>>
  if (timedOut === true) return 'timed out'
  if (typeof signal === 'string') return `killed by ${signal}`
  return typeof exitCode === 'number' ? `exit ${exitCode}` : undefined
}

const problems: Readonly<Record<string, string>> = {
  ABORTED: 'cancelled',
  ABORTED_BEFORE_DISPATCH: 'cancelled',
  TOOL_NOT_STARTED: 'never started',
  TOOL_OUTCOME_UNKNOWN: 'outcome unknown',
}

/** Such a result was written by the next program that opened the log. */
function wasCutOff(code: string | undefined): boolean {
  return code === 'TOOL_NOT_STARTED' || code === 'TOOL_OUTCOME_UNKNOWN'
}

function problemOf(code: string | undefined): string {
  return code === undefined ? 'failed' : (problems[code] ?? code)
}

/** A model's arguments may be anything; what is no JSON has no fields to show. */
function parsed({ arguments: text }: { readonly arguments: string }): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
