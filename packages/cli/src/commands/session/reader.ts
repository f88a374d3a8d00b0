import { setFlagsFromString } from 'node:v8'
import type { StoredSession } from '@dsh/harness/session'
import { sessionReader } from '@dsh/harness/presets/headless'
import type { SessionReader } from '@dsh/harness/presets/headless'
import { assertStore, compositionFiles, tellRowsThatAreOff } from '../../composition.ts'
import { inert } from '../../text.ts'
import { withFix } from '../../with-fix.ts'
import type { Io, Output } from '../../io.ts'

/** Does `job` with the stored sessions, and closes them. Nothing is written but by `job`. */
export async function withReader<T>(io: Io, job: (reader: SessionReader) => Promise<T>): Promise<T> {
  keepHeapSmall()
  const { home, env } = io
  const reader = await sessionReader({ home, env, files: compositionFiles(home) })
  try {
    tellRowsThatAreOff(reader.ctx, io)
    assertStore(reader.ctx, io)
    return await job(reader)
  } catch (error) {
    throw withFix(error, io)
  } finally {
    await reader.close()
  }
}

/**
 * A long log passes through in parts. V8 would let the heap grow with all that has passed, to collect less often: 200 MB
 * above what is needed, against 50.
 */
function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=50')
}

/** Says what a reader must know beside the events. */
export function tellState({ header, readOnly, holder, gaps = [] }: StoredSession, err: Output): void {
  if (readOnly !== undefined) err.line(`the session is read-only: ${inert(readOnly)}`)
  else if (holder !== undefined) err.line(`the session is open in process ${holder.pid}`)
  for (const { fromSeq, toSeq, bytes, reason } of gaps) {
    const lost = toSeq < fromSeq ? `before event ${fromSeq}` : `events ${fromSeq} to ${toSeq}, ${bytes} bytes`
    err.line(`damaged: ${lost}: ${inert(reason)}`)
  }
  if (gaps.length > 0) err.line(`dsh session verify ${inert(header.id)} tells what can be mended`)
}
