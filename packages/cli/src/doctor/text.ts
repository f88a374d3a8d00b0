import { Redaction } from '@dsh/harness/plugins/session-export'
import { inColumns } from '../columns.ts'
import { paint } from '../style.ts'
import type { Style } from '../style.ts'
import { counted, unbroken } from '../text.ts'
import type { Finding } from './finding.ts'

const colors = { ok: 'green', note: 'yellow', problem: 'red' } as const
const checkColumns = 8

/** `ok       disk      8.1 GB free`, and what mends it below. */
export function findingLines({ check, state, detail, fix }: Finding, style: Style): string {
  const line = `${paint(inColumns(state, 7), colors[state], style)}  ${inColumns(check, checkColumns)}  ${unbroken(detail)}\n`
  return fix === undefined ? line : `${line}${' '.repeat(9)}${unbroken(fix)}\n`
}

/** The last line. */
export function totalText(findings: readonly Finding[]): string {
  const count = (wanted: Finding['state']): number => findings.filter(({ state }) => state === wanted).length
  const [problems, notes] = [count('problem'), count('note')]
  const parts = [
    problems === 0 ? 'no problem' : counted(problems, 'problem'),
    ...(notes === 0 ? [] : [counted(notes, 'note')]),
  ]
  return parts.join(', ')
}

/** A reason may quote what must stay secret. */
export function withoutSecrets(finding: Finding, secrets: readonly string[]): Finding {
  const redaction = new Redaction({ secrets })
  const { detail, fix } = finding
  return {
    ...finding,
    detail: redaction.text(detail),
    ...(fix === undefined ? {} : { fix: redaction.text(fix) }),
  }
}
