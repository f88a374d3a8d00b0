import type { Context } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { askPerson } from '../person.ts'
import { inert } from '../text.ts'
import type { Io } from '../io.ts'

export interface Question {
  readonly toolName: string
  readonly arguments?: JsonValue
  /** Why it is asked. */
  readonly reason?: string
}

export type Reply = { readonly allow: true } | { readonly allow: false; readonly reason?: string }

/** Lets the person at the terminal decide, one question after the other, also where several agents ask at once. */
export function answerAsks(ctx: Context, io: Io): void {
  let last: Promise<unknown> = Promise.resolve()
  ctx.on('approval/request', async question => {
    const text = questionText(question)
    const { signal } = question
    const turn = last.then(() => askPerson({ text, again: '  y or n: ', parse: parseReply, signal }, io))
    last = turn.catch(() => {})
    const reply = await turn
    if (reply?.allow === true) return { outcome: 'allowed-once' }
    // The end of the input is a no.
    return { outcome: 'rejected', ...(reply?.reason === undefined ? {} : { reason: reply.reason }) }
  })
}

/** The whole command or the whole arguments: nothing is approved unseen. */
export function questionText({ toolName, arguments: args, reason }: Question): string {
  const command = commandOf(args)
  const shown = command ?? JSON.stringify(args, null, 2) ?? ''
  const why = reason === undefined ? '' : `  ${inert(reason)}\n`
  return `? allow ${inert(toolName)}\n${indented(inert(shown))}\n${why}  y once, n, or n and a reason: `
}

/** Undefined for what is neither: an empty line never approves. */
export function parseReply(line: string): Reply | undefined {
  const [, word = '', rest = ''] = /^\s*(\S*)\s*(.*?)\s*$/.exec(line) ?? []
  if (/^y(es)?$/i.test(word) && rest === '') return { allow: true }
  if (/^no?$/i.test(word)) return rest === '' ? { allow: false } : { allow: false, reason: rest }
  return undefined
}

function commandOf(args: JsonValue | undefined): string | undefined {
  if (typeof args !== 'object' || args === null || !('command' in args)) return undefined
  const { command } = args as { command?: JsonValue }
  return typeof command === 'string' ? command : undefined
}

function indented(text: string): string {
  return text
    .split('\n')
    .map(line => `  │ ${line}`)
    .join('\n')
}
