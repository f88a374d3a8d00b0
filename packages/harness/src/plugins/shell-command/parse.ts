import type { ShellProgram } from './program.ts'
import type { Collected } from './collect.ts'

/** What is longer than any command a person would read. */
const longestText = 256 * 1024
let loading: Promise<{ readonly collect: (text: string) => Collected }> | undefined
/** Who judges a call and who keeps what it destroys read the same text, one after the other. */
let last: ShellProgram | undefined

/**
 * Reads `text` as bash would. Undefined where it is no whole program, or not surely the one that the shell would run;
 * never rejects. The parser is loaded at the first call.
 */
export async function parseShell(text: string): Promise<ShellProgram | undefined> {
  if (text.length > longestText || text.includes('\0')) return undefined
  try {
    if (last?.text === text) return last
    loading ??= import('./collect.ts')
    const { collect } = await loading
    const { commands, isComplete } = collect(text)
    last = { text, commands, isComplete }
    return last
  } catch {
    return undefined
  }
}
