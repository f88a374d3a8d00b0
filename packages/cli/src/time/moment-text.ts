import { placeOf } from '@dsh/harness/plugins/time-travel'
import type { Moment } from '@dsh/harness/plugins/time-travel'
import { textOf } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { counted, inert, oneLine, size, unbroken } from '../text.ts'
import type { FilesThen } from './files-then.ts'

const shownMessages = 40
const shownFiles = 40

export interface ShownMoment {
  readonly moment: Moment
  /** By key; undefined where nobody derives any. */
  readonly values: Readonly<Record<string, JsonValue>> | undefined
  /** Why a key has no value. */
  readonly problems: Readonly<Record<string, string>>
  readonly files: FilesThen
}

/** A session as of an event, for a person. */
export function momentLines({ moment, values, problems, files }: ShownMoment): string[] {
  const { history, header, queued } = moment
  const route =
    header === undefined ? 'no model asked yet' : `to ${header.config.provider}/${header.config.model}`
  return [
    ...placeLines(moment),
    '',
    unbroken(`context      ${counted(history.messages.length, 'message')}, ${route}`),
    ...contextLines(history),
    ...(queued.length === 0 ? [] : [`queued       ${counted(queued.length, 'message')}`]),
    ...queued.map(message => messageLine(message, undefined)),
    '',
    ...(values === undefined
      ? ['projections  none are derived here']
      : ['projections', ...valueLines(values)]),
    ...Object.entries(problems).map(([key, problem]) => unbroken(`  ${key}: cannot be derived: ${problem}`)),
    '',
    ...filesLines(files),
  ]
}

function placeLines({ event, cursor, calls, request, isAsking }: Moment): string[] {
  const { openTurn, openStep, lastTurn } = cursor
  const step = openStep === undefined ? 'between steps' : `step ${openStep}`
  const idle = lastTurn === 0 ? 'before the first turn' : `after turn ${lastTurn}`
  const where = openTurn === undefined ? idle : `in turn ${openTurn}, ${step}`
  const asking = isAsking && request !== undefined ? [`request ${placeOf(request)} is being answered`] : []
  const waiting = calls.map(({ callId, name, startSeq, callSeq }) => {
    const state = startSeq !== undefined ? 'running' : callSeq !== undefined ? 'called' : 'asked for'
    return unbroken(`${name} (${callId}) is ${state}`)
  })
  const head = `event #${event.seq} · ${event.type} · ${new Date(event.time).toISOString()} · ${where}`
  return [unbroken(head), ...[...asking, ...waiting].map(line => `  ${line}`)]
}

/** The last ones: what was said long ago is in `session show`. */
function contextLines({ messages, seqs }: Moment['history']): string[] {
  const first = Math.max(0, messages.length - shownMessages)
  const earlier = first === 0 ? [] : [`  … ${counted(first, 'earlier message')}; --json has all`]
  return [...earlier, ...messages.slice(first).map((message, at) => messageLine(message, seqs[first + at]))]
}

function messageLine(
  { role, source, content }: Moment['history']['messages'][number],
  seq: number | undefined,
): string {
  const parts = content.map(block => {
    switch (block.type) {
      case 'tool-call':
        return `→ ${block.name} ${block.arguments}`
      case 'tool-result':
        return `← ${textOf(block.content)}`
      case 'text':
        return block.text
      default:
        return `[${block.type}]`
    }
  })
  const who = source.kind === 'user' || source.kind === 'model' ? role : source.kind
  const at = seq === undefined ? '' : `#${seq}`
  return `  ${at.padEnd(6)} ${inert(who).padEnd(9)} ${oneLine(parts.join(' '))}`.trimEnd()
}

function valueLines(values: Readonly<Record<string, JsonValue>>): string[] {
  const width = Math.max(0, ...Object.keys(values).map(key => key.length))
  return Object.entries(values).map(
    ([key, value]) => `  ${inert(key).padEnd(width)}  ${oneLine(JSON.stringify(value))}`,
  )
}

function filesLines(files: FilesThen): string[] {
  if ('missing' in files) return [unbroken(`files        unknown: ${files.missing}`)]
  const { point, list } = files
  const bytes = list.reduce((sum, file) => sum + file.size, 0)
  const head = `files        ${counted(list.length, 'file')}, ${size(bytes)}, as they were after event #${point.after}`
  const shown = list.slice(0, shownFiles).map(({ path, size: own }) => unbroken(`  ${path}  ${size(own)}`))
  const rest = list.length - shown.length
  return [head, ...shown, ...(rest === 0 ? [] : [`  … ${counted(rest, 'more file')}; --json has all`])]
}
