import type { Agent } from '../../core/agent/index.ts'
import { keepArtifact } from '../../core/session/index.ts'
import { joinEnds } from '../../core/tools/index.ts'
import { boundOutput } from '../bash/index.ts'
import type { CapturedOutput } from '../subprocess/index.ts'

/** Both ends of `output` within `maxBytes`, harmless to show; all that was kept goes to the session's artifacts where that is more. */
export async function shownOutput(output: CapturedOutput, maxBytes: number, owner: Agent): Promise<string> {
  const bounded = boundOutput(output, maxBytes)
  const { kept } = bounded
  return joinEnds(bounded, kept === undefined ? undefined : await keepArtifact(owner.session, kept))
}
