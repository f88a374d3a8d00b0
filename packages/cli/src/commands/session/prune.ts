import { planRetention, removeStored, retentionCandidates } from '@dsh/harness/plugins/retention'
import type { StoredCandidate } from '@dsh/harness/plugins/retention'
import type { SessionReader } from '@dsh/harness/presets/headless'
import { countOption } from '../../count-option.ts'
import { CliError, exitCode } from '../../errors.ts'
import { isConfirmed } from '../../person.ts'
import { localTime } from '../../place-and-time.ts'
import { counted, size } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { withReader } from './reader.ts'
import { withRoom } from './with-room.ts'

const usage = 'dsh session prune --older-than 30'

/** Removes what is archived, and with an age what is older, once the person has seen what that is. */
export const prune: CommandBody = ({ values }, io) => {
  const maxAgeDays = countOption('older-than', values['older-than'], usage)
  return withReader(io, async ({ ctx }) => {
    const chosen = await chosenFrom(ctx, maxAgeDays)
    for (const each of chosen) io.out.line(lineOf(each))
    if (chosen.length === 0) io.err.line('nothing to remove')
    if (chosen.length === 0 || values['dry-run'] === true) return 0
    if (values.yes !== true && !(await isConfirmed(`? remove ${totalOf(chosen)} for good`, io)))
      throw new CliError('NOT_REMOVED', 'nothing was removed', {
        exitCode: exitCode.denied,
        fix: `dsh session prune${maxAgeDays === undefined ? '' : ` --older-than ${maxAgeDays}`} --yes`,
      })
    await removeAll(ctx, chosen, io)
    return 0
  })
}

async function chosenFrom(
  ctx: SessionReader['ctx'],
  maxAgeDays: number | undefined,
): Promise<readonly StoredCandidate[]> {
  const candidates = await retentionCandidates(ctx)
  const old = planRetention(candidates, { maxAgeDays }, Date.now()).map(({ candidate }) => candidate)
  const archived = candidates.filter(each => each.archived && !each.inUse && !old.includes(each))
  return [...archived, ...old].toSorted((a, b) => a.updatedAt - b.updatedAt)
}

async function removeAll(
  ctx: SessionReader['ctx'],
  chosen: readonly StoredCandidate[],
  io: Io,
): Promise<void> {
  const removed: StoredCandidate[] = []
  for (const each of chosen) {
    if (await withRoom(io.home, () => removeStored(ctx, each.id))) removed.push(each)
    else io.err.line(`note: session ${each.id} stays: somebody is working on it`)
  }
  io.err.line(`removed: ${totalOf(removed)}`)
}

function lineOf({ id, updatedAt, bytes, archived }: StoredCandidate): string {
  return `${id}  ${localTime(updatedAt)}  ${size(bytes)}${archived ? '  archived' : ''}`
}

function totalOf(list: readonly StoredCandidate[]): string {
  const bytes = list.reduce((sum, each) => sum + each.bytes, 0)
  return `${counted(list.length, 'session')}, ${size(bytes)}`
}
