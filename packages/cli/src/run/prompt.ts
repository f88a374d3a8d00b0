import { CliError, usageError } from '../errors.ts'
import type { Io } from '../io.ts'

/** The task: the words, or standard input where there are none or only `-`. Rejects with `signal`'s reason. */
export async function readPrompt(words: readonly string[], io: Io, signal: AbortSignal): Promise<string> {
  const isFromInput = words.length === 0 || (words.length === 1 && words[0] === '-')
  if (!isFromInput) return nonBlank(words.join(' '))
  const { stdin } = io
  if (stdin.isTTY === true) {
    const why =
      words.length === 0 ? 'there is no prompt' : 'standard input is a terminal, so there is no prompt in it'
    throw usageError('MISSING_PROMPT', why, 'dsh run "what to do"')
  }
  return nonBlank(await readAll(stdin, signal))
}

function nonBlank(text: string): string {
  if (text.trim() !== '') return text
  throw usageError('EMPTY_PROMPT', 'the prompt is empty', 'dsh run "what to do"')
}

async function readAll(input: Io['stdin'], signal: AbortSignal): Promise<string> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    return await Promise.race([collect(input), aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
    input.destroy()
  }
}

/** No model takes so much; an input without an end must not fill the memory. */
const maxBytes = 64 * 1024 * 1024

async function collect(input: Io['stdin']): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of input) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size > maxBytes) break
    }
  } catch (cause) {
    throw new CliError('UNREADABLE_INPUT', `standard input could not be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (size > maxBytes)
    throw usageError(
      'PROMPT_TOO_LARGE',
      `the prompt is larger than ${maxBytes} bytes`,
      'dsh run "look into FILE"',
    )
  return Buffer.concat(chunks).toString('utf8').replace(/\n$/, '')
}
