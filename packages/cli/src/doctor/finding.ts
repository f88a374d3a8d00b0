import type { Io } from '../io.ts'

/** What one look gave. */
export interface Finding {
  /** The word that the report begins a line with. */
  readonly check: string
  /** A note costs something or is passed over; a problem keeps something from working. */
  readonly state: 'ok' | 'note' | 'problem'
  /** UPPER_SNAKE, for programs. */
  readonly code: string
  readonly detail: string
  /** The command, or the one thing, that mends it. */
  readonly fix?: string
}

/** What a check may look at. None of them writes. */
export interface Place extends Pick<Io, 'env' | 'home' | 'command' | 'runtime'> {
  /** Absent where the folder is gone. */
  readonly cwd?: string
  readonly isTerminal: boolean
  /** Looks into every log, however long that takes. */
  readonly isDeep: boolean
}

export type Findings = readonly Omit<Finding, 'check'>[]

/** A check that throws has found that it could not look. */
export interface Check {
  readonly name: string
  look(place: Place): Promise<Findings>
}

export function ok(detail: string, code = 'OK'): Findings[number] {
  return { state: 'ok', code, detail }
}

export function note(code: string, detail: string, fix?: string): Findings[number] {
  return { state: 'note', code, detail, ...(fix === undefined ? {} : { fix }) }
}

export function problem(code: string, detail: string, fix: string): Findings[number] {
  return { state: 'problem', code, detail, fix }
}
