import { setImmediate } from 'node:timers/promises'
import type { Io } from './io.ts'

/** Whether there is somebody to ask. */
export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.err.isTerminal
}

export interface PersonQuestion<T> {
  readonly text: string
  /** Said after a line that is no answer. */
  readonly again: string
  /** Undefined for a line that is no answer. */
  parse(line: string): T | undefined
  readonly signal?: AbortSignal
}

/** Asks the person at the terminal until a line is an answer; undefined where the input ends first. */
export async function askPerson<T>(
  { text, again, parse, signal }: PersonQuestion<T>,
  io: Io,
): Promise<T | undefined> {
  const { createInterface } = await import('node:readline')
  await dropTypedAhead(io.stdin)
  const options = { input: io.stdin, terminal: false }
  const lines = createInterface(signal === undefined ? options : { ...options, signal })
  io.err.write(text)
  try {
    for await (const line of lines) {
      const answer = parse(line)
      if (answer !== undefined) return answer
      io.err.write(again)
    }
    return undefined
  } finally {
    lines.close()
    io.stdin.pause()
  }
}

/** A yes of the person; without a terminal there is none. An empty line never is one. */
export async function isConfirmed(question: string, io: Io): Promise<boolean> {
  if (!canAsk(io)) return false
  const parse = (line: string): boolean | undefined => {
    const word = line.trim()
    if (/^y(es)?$/i.test(word)) return true
    return /^no?$/i.test(word) ? false : undefined
  }
  return (await askPerson({ text: `${question}  y or n: `, again: '  y or n: ', parse }, io)) ?? false
}

/** Lines that were typed before the question stood there answer something else. One turn of the loop reads them all. */
async function dropTypedAhead(input: Io['stdin']): Promise<void> {
  input.resume()
  await setImmediate()
  await setImmediate()
  input.pause()
}
