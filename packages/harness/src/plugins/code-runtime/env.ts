import { stripTypeScriptTypes } from 'node:module'

/** What programs are run with: this very Node, and whether there is a shell to set limits. */
export const host = {
  node: process.execPath,
  hasShell: process.platform !== 'win32',
  knowsFlag: (flag: string): boolean => process.allowedNodeEnvironmentFlags.has(flag),
} as const

/** `source` with blanks for its types. Throws a SyntaxError for what is more than types, and for what is no program. */
export function eraseTypes(source: string): string {
  const { emitWarning } = process
  // Node says at the first time that this is an experiment of its own.
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}
