import type { UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import { cutText } from '../../core/tools/index.ts'
import { noticeSource } from './cut-off.ts'
import type { Verdict } from './examine.ts'
import type { ExaminedCall, RecoveryReport } from './report.ts'

const intro = 'The program ended in the middle of the work above and was started again. What it left:'

const verdictTexts: Readonly<Record<Verdict, string>> = {
  'never started': 'never started, changed nothing',
  finished: 'took effect: the file holds what the call wrote',
  'changed nothing': 'did not take effect: the file is as it was before',
  unknown: 'outcome unknown: look at what it did before you run it again',
}

const maxSubjectBytes = 160

/** What the model is told of it, once; undefined where nothing was left. */
export function noticeOf({ turns, lost }: RecoveryReport): UserMessage | undefined {
  const calls = turns.flatMap(turn => turn.calls)
  const lines = [...calls.map(callLine), ...lost.map(line => `- ${line}`)]
  if (lines.length === 0) return undefined
  const summary = `Cut off: ${summaryOf(calls, lost)}`
  return createUserMessage({
    content: [{ type: 'text', text: [intro, ...lines].join('\n') }],
    source: { kind: 'plugin', plugin: noticeSource, form: 'notice', summary },
  })
}

function callLine({ name, arguments: args, verdict, wasAsked }: ExaminedCall): string {
  const asked = wasAsked ? '; it was waiting for an approval that is no longer asked for' : ''
  return `- ${name} ${cutText(args, maxSubjectBytes)}: ${verdictTexts[verdict]}${asked}`
}

/** `2 calls never started, 1 unknown, 1 thing lost`. */
function summaryOf(calls: readonly ExaminedCall[], lost: readonly string[]): string {
  const counts = [...Map.groupBy(calls, ({ verdict }) => verdict)].map(
    ([verdict, { length }], index) =>
      `${length}${index === 0 ? ` call${length === 1 ? '' : 's'}` : ''} ${verdict}`,
  )
  if (lost.length > 0) counts.push(`${lost.length} thing${lost.length === 1 ? '' : 's'} lost`)
  return counts.join(', ')
}
