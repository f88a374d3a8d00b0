import type { TurnEndReason } from '@dsh/protocol'
import { paint } from './style.ts'
import type { Style } from './style.ts'
import { duration, inert, oneLine } from './text.ts'
import { factsOf, hasFailed } from './transcript.ts'
import type { Entry, ToolEntry } from './transcript.ts'

const shownOutput = 8

/** An entry as lines for a person, ended by a line break; nothing in them acts on a terminal. */
export function linesOf(entry: Entry, style: Style): string {
  switch (entry.kind) {
    case 'prompt':
      return `${paint('› ', 'bold', style)}${inert(entry.text.trimEnd())}\n`
    case 'answer':
      return `${inert(entry.text.trimEnd())}\n`
    case 'tool':
      return toolLines(entry, style)
    case 'retry': {
      const { code, message } = entry.failure
      return `${paint('↻', 'red', style)} ${code}: ${oneLine(message)} · again in ${duration(entry.delayMs)} (${entry.count})\n`
    }
    case 'notice':
      return `${paint(`· ${oneLine(entry.text)}`, 'dim', style)}\n`
    case 'end':
      return `${paint(`■ ${endOf(entry.reason)}`, 'red', style)}\n`
  }
}

/** Why a turn ended, in words. */
export function endOf(reason: TurnEndReason): string {
  switch (reason.kind) {
    case 'completed':
      return 'done'
    case 'aborted':
      return reason.reason.kind === 'hook' ? `stopped: ${oneLine(reason.reason.reason)}` : 'cancelled'
    case 'blocked':
      return 'blocked before the model was asked'
    case 'error':
      return `${reason.error.code}: ${inert(reason.error.message)}`
    case 'max-tokens':
      return 'the answer reached the output limit of the model and is cut off'
    case 'interrupted':
      return 'interrupted: the process ended in the middle of the turn'
    case 'forked':
      return 'forked in the middle of the turn'
    default:
      return (reason as { kind: string }).kind
  }
}

function toolLines(entry: ToolEntry, style: Style): string {
  const { name, subject, problem, changed } = entry
  const mark = paint(problem === undefined ? '●' : '✗', hasFailed(entry) ? 'red' : 'green', style)
  const touched = changed.filter(path => path !== subject).map(path => ` → ${inert(path)}`)
  const head = `${mark} ${inert(name)} ${oneLine(subject)}`.trimEnd()
  return [
    `${head} ${paint(`(${factsOf(entry)})`, 'dim', style)}${touched.join('')}`,
    ...tail(entry, style),
    '',
  ].join('\n')
}

/** The last lines of what a command printed, and the first of a failure. */
function tail({ name, output, problem }: ToolEntry, style: Style): string[] {
  const lines = output.split('\n').filter(line => line.trim() !== '' && !/^\[exit code: \d+\]$/.test(line))
  const shown =
    problem !== undefined ? lines.slice(0, shownOutput) : name === 'bash' ? lines.slice(-shownOutput) : []
  return shown.map(line => paint(`  │ ${oneLine(line)}`, 'dim', style))
}
