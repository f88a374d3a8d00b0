import type { ToolErrorInfo } from '@dsh/protocol'
import { isHarnessError } from '../../kernel/index.ts'
import { wellFormed } from './text.ts'

/** What a throw means to a model: a message, and name and code where one of ours was thrown. */
export interface Thrown {
  readonly message: string
  readonly info?: ToolErrorInfo
}

const unprintable = '<unprintable thrown value>'

/** Reads anything that may be thrown, also what traps every look at it; never throws. */
export function readThrown(thrown: unknown): Thrown {
  const message = messageOf(thrown)
  const info = infoOf(thrown)
  return info === undefined ? { message } : { message, info }
}

/** Whether `thrown` says no more than that `signal` aborted. */
export function isAbortOf(thrown: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  if (thrown === signal.reason) return true
  try {
    return (
      typeof thrown === 'object' && thrown !== null && (thrown as { name?: unknown }).name === 'AbortError'
    )
  } catch {
    return false
  }
}

function messageOf(thrown: unknown): string {
  try {
    if ((typeof thrown === 'object' && thrown !== null) || typeof thrown === 'function') {
      const { message } = thrown as { message?: unknown }
      if (typeof message === 'string' && message !== '') return wellFormed(message)
    }
    return wellFormed(String(thrown))
  } catch {
    return unprintable
  }
}

function infoOf(thrown: unknown): ToolErrorInfo | undefined {
  try {
    if (typeof thrown !== 'object' || thrown === null || !isHarnessError(thrown)) return undefined
    const { name, code } = thrown as { name?: unknown; code?: unknown }
    if (typeof name !== 'string' || typeof code !== 'string') return undefined
    const className: unknown = thrown.constructor?.name
    return { name: name === 'HarnessError' && typeof className === 'string' ? className : name, code }
  } catch {
    return undefined
  }
}
