/** What a person said of a folder; `undecided` = nothing yet. */
export type TrustState = 'trusted' | 'untrusted' | 'undecided'

/** A file of a project that would run something, with its content. */
export interface TrustPart {
  /** Relative to the folder. */
  readonly path: string
  readonly sha256: string
}

export interface TrustEntry {
  /** Absolute, links resolved. */
  readonly path: string
  readonly state: Exclude<TrustState, 'undecided'>
  /** What was shown and admitted, as it was then. */
  readonly parts: readonly TrustPart[]
}

export interface TrustList {
  readonly entries: readonly TrustEntry[]
  /** Why nothing counts as trusted although there is a file, with what mends it. */
  readonly problem?: string
}

/**
 * Which folders a person trusts to bring instructions and things that run, as `ctx.trust`. Kept in `trust.json` of the
 * home folder; a file that cannot be read trusts nothing.
 */
export interface Trust {
  /**
   * The nearest decision counts, but one on a folder above not for another repository of git below it. Links are
   * resolved first. A folder that is not there is undecided.
   */
  stateOf(folder: string): Promise<TrustState>
  /** Those of `parts` that may not run: all where the folder is not trusted, else those nobody admitted as they are now. */
  pending(folder: string, parts: readonly TrustPart[]): Promise<readonly TrustPart[]>
  /** Trusts the folder and admits `parts`; what was admitted before counts no more. */
  grant(folder: string, parts?: readonly TrustPart[]): Promise<void>
  /** Admits `parts` besides those of the folder that are admitted. Throws NOT_TRUSTED where it is not trusted. */
  admit(folder: string, parts: readonly TrustPart[]): Promise<void>
  /** From here on it is untrusted, also below a folder that is trusted. */
  revoke(folder: string): Promise<void>
  list(): Promise<TrustList>
}

declare module '../../kernel/index.ts' {
  interface Services {
    trust: Trust
  }
}
