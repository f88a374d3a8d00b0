import type { PtyWait } from './service.ts'

export interface ReadinessLimits {
  /** Milliseconds of silence before it counts that a program waits for input. */
  readonly exactProbeAfterMs: number
  /** Milliseconds between two looks. */
  readonly pollIntervalMs: number
  /** Milliseconds of silence that are taken for an end, and said to be no more than that. */
  readonly idleSilenceMs: number
}

/** What is known of a terminal some time after something was sent to it. */
export interface ReadinessFacts {
  readonly form: 'type' | 'run'
  readonly isSubmitted: boolean
  readonly isPatient: boolean
  readonly hasExited: boolean
  /** The shell came to its prompt after the send, and began nothing since. */
  readonly isAtPrompt: boolean
  /** False where another program has the terminal; undefined where nobody can tell. */
  readonly isShellInFront: boolean | undefined
  /** The wait for input that goes on now, before the send, and at the look before this one. */
  readonly inputWait: string | undefined
  readonly waitBefore: string | undefined
  readonly lastWait: string | undefined
  readonly sinceSendMs: number
  readonly silentMs: number
  readonly timeoutMs: number
}

/** Silence after what is only typed and not entered: nothing need come. */
const typedSilenceMs = 300

/** Why a send is over, or undefined while it goes on. Silence never ends a command. */
export function settle(facts: ReadinessFacts, limits: ReadinessLimits): PtyWait | undefined {
  const { form, isSubmitted, silentMs } = facts
  if (facts.hasExited) return 'session_exit'
  if (facts.isAtPrompt && (form === 'run' || isSettledPrompt(facts, limits))) return 'stdin_read'
  if (silentMs >= limits.exactProbeAfterMs && isNewWait(facts)) return 'stdin_read'
  if (facts.sinceSendMs >= facts.timeoutMs) return 'timeout'
  if (form === 'run' || facts.isPatient) return undefined
  return silentMs >= (isSubmitted ? limits.idleSilenceMs : typedSilenceMs) ? 'inferred_idle' : undefined
}

/** Of several lines that were typed each brings a prompt; the last one is followed by silence. */
function isSettledPrompt({ isShellInFront, silentMs }: ReadinessFacts, limits: ReadinessLimits): boolean {
  return isShellInFront !== false && silentMs >= limits.pollIntervalMs
}

/** A wait that was there before the send has not seen it; one that was not there at the last look may pass. */
function isNewWait({ inputWait, waitBefore, lastWait }: ReadinessFacts): boolean {
  return inputWait !== undefined && inputWait !== waitBefore && inputWait === lastWait
}
