import type { ShellProgram } from './program.ts'
import type { Collected } from './collect.ts'

/** What is longer than any command a person would read. */
const longestText = 256 * 1024
let loading: Promise<{ readonly collect: (text: string) => Collected }> | undefined

/**
 * Reads `text` as bash would. Undefined where it is no whole program, or not surely the one that the shell would run;
 * never rejects. The parser is loaded at the first call.
 */
export async function parseShell(text: string): Promise<ShellProgram | undefined> {
  if (text.length > longestText || text.includes('\0')) return undefined
  try {
    loading ??= import('./collect.ts')
    const { collect } = await loading
    const { commands, isComplete } = collect(text)
    return { text, commands, isComplete }
  } catch {
    return undefined
  }
}
