/**
 * `delete`: files go. `overwrite`: what they hold is replaced. `discard`: git puts files back to what it has. `refs`:
 * commits lose the name by which they are found. `remote`: another repository loses some. `objects`: git forgets what it
 * could still bring back.
 */
export type DestructionKind = 'delete' | 'overwrite' | 'discard' | 'refs' | 'remote' | 'objects'

/** What a command says of its loss; paths as they are written, undefined for one that only the shell can know. */
export interface Loss {
  readonly kind: DestructionKind
  readonly paths?: readonly (string | undefined)[]
  /** A folder among `paths` stands for all below it. */
  readonly isDeep?: boolean
  /** Where git works, relative to where the command runs; '' for there. */
  readonly repository?: string
  readonly refs?: readonly string[]
}
