import { setImmediate } from 'node:timers/promises'
import type { Context } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { inert } from '../text.ts'
import type { Io } from '../io.ts'

export interface Question {
  readonly toolName: string
  readonly arguments?: JsonValue
  /** Why it is asked. */
  readonly reason?: string
}

export type Reply = { readonly allow: true } | { readonly allow: false; readonly reason?: string }

/** Whether there is somebody to ask. */
export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.err.isTerminal
}

/** Lets the person at the terminal decide, one question after the other, also where several agents ask at once. */
export function answerAsks(ctx: Context, io: Io): void {
  let last: Promise<unknown> = Promise.resolve()
  ctx.on('approval/request', async question => {
    const turn = last.then(() => askPerson(question, io, question.signal))
    last = turn.catch(() => {})
    const reply = await turn
    if (reply.allow) return { outcome: 'allowed-once' }
    return { outcome: 'rejected', ...(reply.reason === undefined ? {} : { reason: reply.reason }) }
  })
}

/** Asks the person at the terminal, again until the answer is one. The end of the input is a no. */
async function askPerson(question: Question, io: Io, signal: AbortSignal): Promise<Reply> {
  const { createInterface } = await import('node:readline')
  await dropTypedAhead(io.stdin)
  const lines = createInterface({ input: io.stdin, terminal: false, signal })
  io.err.write(questionText(question))
  try {
    for await (const line of lines) {
      const reply = parseReply(line)
      if (reply !== undefined) return reply
      io.err.write('  y or n: ')
    }
    return { allow: false }
  } finally {
    lines.close()
    io.stdin.pause()
  }
}

/** Lines that were typed before the question stood there answer something else. One turn of the loop reads them all. */
async function dropTypedAhead(input: Io['stdin']): Promise<void> {
  input.resume()
  await setImmediate()
  await setImmediate()
  input.pause()
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
