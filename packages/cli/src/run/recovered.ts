import type { RecoveryReport, Verdict } from '@dsh/harness/plugins/recovery'
import { parseJson } from '@dsh/harness/kernel'
import { unbroken } from '../text.ts'
import { Transcript } from '../transcript.ts'

const verdictTexts: Readonly<Record<Verdict, string>> = {
  'never started': 'never started',
  finished: 'took effect',
  'changed nothing': 'did not take effect',
  unknown: 'outcome unknown: look before it is run again',
}

/** What a person is told who goes on with a session that was cut off. */
export function recoveredLines({ time, turns, lost }: RecoveryReport, cwd: string | undefined): string[] {
  const transcript = new Transcript(cwd)
  const calls = turns.flatMap(turn => turn.calls)
  const rows = calls.map(({ name, arguments: args, verdict, wasAsked }) => {
    const asked = wasAsked ? ' (it was waiting for your answer)' : ''
    return `${name} ${transcript.subjectOf(parseJson(args))} · ${verdictTexts[verdict]}${asked}`
  })
  const lines = [...rows, ...lost]
  const when = new Date(time).toLocaleTimeString('en-GB')
  const first = `recovered: the last run was cut off at ${when}${lines.length === 0 ? '' : '; it left'}`
  return [first, ...lines.map(line => unbroken(`  ${line}`))]
}
