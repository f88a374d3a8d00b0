/** Base of every error a person or a program may route on. `code` is a closed union per area. */
export class HarnessError<Code extends string = string> extends Error {
  static {
    this.prototype.name = 'HarnessError'
  }

  readonly code: Code

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** No error has a longer lineage; a trap could go on for ever. */
const longestLineage = 32

/** By the name on its prototype chain, so that an error of another copy of the kernel counts. */
export function isHarnessError(thrown: object): boolean {
  let at: unknown = Object.getPrototypeOf(thrown)
  for (let depth = 0; depth < longestLineage; depth++) {
    if (typeof at !== 'object' || at === null) return false
    if (Object.getOwnPropertyDescriptor(at, 'name')?.value === 'HarnessError') return true
    at = Object.getPrototypeOf(at)
  }
  return false
}

export type KernelErrorCode =
  /** An effect was made on a plugin that is being or has been disposed. */
  | 'INACTIVE_EFFECT'
  | 'DUPLICATE_SERVICE'
  /** A service was read, or waited for, that nobody provides. */
  | 'MISSING_SERVICE'
  | 'INVALID_PLUGIN'
  | 'INVALID_CONFIG'
  /** The kernel is in this process more than once. */
  | 'SECOND_COPY'
  /** `next()` was called while an earlier call of the same listener had not settled. */
  | 'NEXT_OPEN'

export class KernelError extends HarnessError<KernelErrorCode> {
  static {
    this.prototype.name = 'KernelError'
  }
}

/** One error from many: the only one itself, else an AggregateError in the order given. */
export function joinErrors(errors: readonly unknown[], message: string): unknown {
  return errors.length === 1 ? errors[0] : new AggregateError(errors, message)
}

/** What anything that was thrown says of itself. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
