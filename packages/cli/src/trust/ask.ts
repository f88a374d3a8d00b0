import type { LocalTrust, ProjectParts } from '@dsh/harness/plugins/trust'
import { askPerson } from '../person.ts'
import type { Io } from '../io.ts'
import { introLine, partLines, questionAgain, questionText } from './text.ts'

export interface TrustQuestion {
  readonly folder: string
  readonly found: ProjectParts
  /** It was trusted as it was before. */
  readonly isChanged: boolean
  readonly signal?: AbortSignal
}

/** Shows what would load and asks; an empty line, and the end of the input, are a no. */
export async function askTrust(
  { folder, found, isChanged, signal }: TrustQuestion,
  io: Io,
): Promise<boolean> {
  io.err.write(introLine(folder, isChanged) + partLines(found))
  const parse = (line: string): boolean | undefined => {
    const word = line.trim()
    if (/^y(es)?$/i.test(word)) return true
    return /^(no?)?$/i.test(word) ? false : undefined
  }
  const question = { text: questionText, again: questionAgain, parse, ...(signal && { signal }) }
  return (await askPerson(question, io)) ?? false
}

/** Keeps a yes with all that was shown. */
export async function keepYes(trust: LocalTrust, { folder, found }: TrustQuestion): Promise<void> {
  await trust.grant(
    folder,
    found.parts.map(({ path, sha256 }) => ({ path, sha256 })),
  )
}
