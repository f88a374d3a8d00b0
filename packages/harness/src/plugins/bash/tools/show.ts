import { keepArtifact } from '../../../core/session/index.ts'
import { joinEnds } from '../../../core/tools/index.ts'
import type { ToolRunContext } from '../../../core/tools/index.ts'
import type { CapturedOutput } from '../../subprocess/index.ts'
import { boundOutput } from '../output.ts'

/** What a model sees of one stream, and what is known of the whole of it. */
export interface Shown {
  readonly text: string
  readonly facts: { readonly bytes: number; readonly omittedBytes: number; readonly artifact?: string }
}

/** The two ends of `output` as it is now; all of it goes to the session's artifacts where that is more. */
export async function show(output: CapturedOutput, maxBytes: number, exec: ToolRunContext): Promise<Shown> {
  const bounded = boundOutput(output, maxBytes)
  const { omittedBytes, kept } = bounded
  const facts = { bytes: output.totalBytes, omittedBytes }
  const artifact = kept === undefined ? undefined : await keepArtifact(exec.agent?.session, kept)
  return {
    text: joinEnds(bounded, artifact),
    facts: artifact === undefined ? facts : { ...facts, artifact },
  }
}
