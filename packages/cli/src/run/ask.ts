import type { ApprovalAnswer, ApprovalProposal, ApprovalQuestion } from '@dsh/harness/plugins/approval'
import type { Context } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { askPerson } from '../person.ts'
import { inert, unbroken } from '../text.ts'
import type { Io } from '../io.ts'

/** What the person is shown of a question. */
export type ShownQuestion = Pick<ApprovalQuestion, 'toolName' | 'arguments' | 'reason' | 'view' | 'proposals'>

/** Lets the person at the terminal decide, one question after the other, also where several agents ask at once. */
export function answerAsks(ctx: Context, io: Io): void {
  let last: Promise<unknown> = Promise.resolve()
  ctx.on('approval/request', async question => {
    const { id, digest, signal } = question
    const again = `  ${choices(question)}: `
    const parse = (line: string): ApprovalAnswer | undefined => parseReply(line, question)
    const turn = last.then(() => askPerson({ text: questionText(question), again, parse, signal }, io))
    last = turn.catch(() => {})
    // The end of the input is a no.
    return { outcome: 'rejected', ...(await turn), id, digest }
  })
}

/** The whole command, change or arguments: nothing is approved unseen. Below it what may be answered. */
export function questionText(question: ShownQuestion): string {
  const { toolName, reason, proposals } = question
  const why = reason === undefined ? [] : [`  ${inert(reason)}`]
  const lines = [
    `? allow ${inert(toolName)}`,
    ...shownLines(question).map(line => `  │ ${inert(line)}`),
    ...why,
    '  y   once',
    ...proposals.map((proposal, place) => offerLine('s', place, proposal)),
    ...proposals.map((proposal, place) => offerLine('r', place, proposal)),
    '  n   no; a reason may follow',
    ...(commandOf(question) === undefined ? [] : ['  e   no, but this command: write it behind']),
  ]
  return `${lines.join('\n')}\n  ${choices(question)}: `
}

const scopeTexts = { s: 'for this session', r: 'from now on in this folder' } as const

function offerLine(key: 's' | 'r', place: number, { text }: ApprovalProposal): string {
  return `  ${keyOf(key, place).padEnd(3)} ${scopeTexts[key]}: ${unbroken(text)}`
}

function keyOf(key: 's' | 'r', place: number): string {
  return place === 0 ? key : `${key}${place + 1}`
}

function choices({ proposals, ...question }: ShownQuestion): string {
  const offers = (['s', 'r'] as const).flatMap(key => proposals.map((_, place) => keyOf(key, place)))
  const keys = ['y', ...offers, 'n', ...(commandOf({ ...question, proposals }) === undefined ? [] : ['e'])]
  return `${keys.slice(0, -1).join(', ')} or ${keys.at(-1)}`
}

/** Undefined for what is no answer: an empty line never approves, and what is not offered is not accepted. */
export function parseReply(line: string, question: ShownQuestion): ApprovalAnswer | undefined {
  const [, word = '', rest = ''] = /^\s*(\S*)\s*(.*?)\s*$/.exec(line) ?? []
  if (/^no?$/i.test(word)) return { outcome: 'rejected', ...(rest !== '' && { reason: rest }) }
  if (/^e$/i.test(word) && rest !== '' && commandOf(question) !== undefined)
    return { outcome: 'rejected', replacement: rest }
  if (rest !== '') return undefined
  if (/^y(es)?$/i.test(word)) return { outcome: 'allowed-once' }
  for (const [key, scope] of [['s', 'session'] as const, ['r', 'rule'] as const]) {
    const proposal = question.proposals.findIndex((_, place) => keyOf(key, place) === word.toLowerCase())
    if (proposal >= 0) return { outcome: 'allowed-once', scope, proposal }
  }
  return undefined
}

function shownLines(question: ShownQuestion): readonly string[] {
  const command = commandOf(question)
  const text = command ?? JSON.stringify(question.arguments, null, 2)
  const { workdir } = fieldsOf(question.arguments)
  const place = command !== undefined && typeof workdir === 'string' ? [`in ${workdir}`] : []
  return changeLines(question) ?? [...place, ...text.split('\n')]
}

function commandOf({ arguments: args, view }: ShownQuestion): string | undefined {
  const { command } = fieldsOf(view?.card === 'terminal' ? view.data : args)
  return typeof command === 'string' ? command : undefined
}

/** What a change takes away and brings, where the tool says it. */
function changeLines({ view }: ShownQuestion): readonly string[] | undefined {
  if (view?.card !== 'diff') return undefined
  const { path, content, oldText, newText, edits = [] } = fieldsOf(view.data)
  if (typeof path !== 'string') return undefined
  if (typeof content === 'string') return [path, ...signed('+', content)]
  const changes = Array.isArray(edits) ? edits : []
  const all = [{ oldText, newText } as JsonValue, ...changes].map(change => fieldsOf(change))
  const lines = all.flatMap(change => {
    const [before, after] = [change['oldText'], change['newText']]
    return typeof before === 'string' && typeof after === 'string'
      ? [...signed('-', before), ...signed('+', after)]
      : []
  })
  return lines.length === 0 ? undefined : [path, ...lines]
}

function signed(sign: '+' | '-', text: string): readonly string[] {
  return text === '' ? [] : text.split('\n').map(line => `${sign} ${line}`)
}

function fieldsOf(value: JsonValue | undefined): Readonly<Record<string, JsonValue | undefined>> {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isRecord ? (value as Readonly<Record<string, JsonValue | undefined>>) : {}
}
