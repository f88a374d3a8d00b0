/** Primary result codes of SQLite. */
export const resultCode = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

/** The primary result code of an error of SQLite, or undefined. */
export function codeOf(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** A rollback journal of a crashed program is in the way of a connection that may not write. */
export function needsRollback(error: unknown): boolean {
  return (error as { errcode?: unknown } | null)?.errcode === 776
}

export function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code === resultCode.busy || code === resultCode.locked
}
