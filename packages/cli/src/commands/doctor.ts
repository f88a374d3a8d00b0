import { exitCode } from '../errors.ts'
import { checks, find } from '../doctor/checks.ts'
import { composition } from '../doctor/composition.ts'
import type { Finding, Place } from '../doctor/finding.ts'
import { findingLines, totalText, withoutSecrets } from '../doctor/text.ts'
import { ownSecrets } from '../own-secrets.ts'
import { styleOf } from '../style.ts'
import type { CommandBody } from '../command.ts'
import type { Io } from '../io.ts'

/** Looks at everything a run depends on, and changes nothing. */
export const doctor: CommandBody = async ({ values }, io) => {
  const place = placeOf(io, { isDeep: values.deep === true })
  const secrets = ownSecrets(io)
  const style = styleOf('out', io)
  const told: Finding[] = []
  const tell = async (work: Promise<readonly Finding[]>): Promise<void> => {
    for (const finding of (await work).map(each => withoutSecrets(each, secrets))) {
      told.push(finding)
      if (values.json === true) io.out.line(JSON.stringify(finding))
      else io.out.write(findingLines(finding, style))
    }
    await io.out.flush()
  }
  for (const work of checks.map(check => find(check, place))) await tell(work)
  // Last, since it runs code of others, which may do anything.
  await tell(find(composition(io.onUncaught), place))
  if (values.json !== true) io.out.line(totalText(told))
  return told.some(({ state }) => state === 'problem') ? exitCode.failed : exitCode.ok
}

function placeOf(io: Io, { isDeep }: { readonly isDeep: boolean }): Place {
  const { env, home, command, runtime, out } = io
  return { env, home, command, runtime, isTerminal: out.isTerminal, isDeep, ...folderOf(io) }
}

function folderOf(io: Io): Pick<Place, 'cwd'> {
  try {
    return { cwd: io.cwd }
  } catch {
    return {}
  }
}
