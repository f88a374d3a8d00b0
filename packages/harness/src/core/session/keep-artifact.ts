import type { Session } from './log.ts'

/** The hash that all of a text is kept under. A store that is full or gone costs the text, not the call that shows a part; without a session nothing is kept. */
export async function keepArtifact(session: Session | undefined, text: string): Promise<string | undefined> {
  try {
    return (await session?.artifacts.put(Buffer.from(text), 'text/plain'))?.sha256
  } catch {
    return undefined
  }
}
