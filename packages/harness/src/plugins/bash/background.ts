import type { TaskCursor, TaskOutput, TaskWork } from '../tasks/index.ts'
import type { CapturedOutput } from '../subprocess/index.ts'
import { inertText, withoutOpenSequence } from './inert.ts'
import { nameSurvivors } from './render.ts'
import type { BashProcess, BashResult } from './service.ts'

/** A command that goes on beside the turns, as the work of a task. */
export function workOf(process: BashProcess): TaskWork {
  return {
    done: process.result.then(result => ({
      status: result.exitCode === 0 ? 'completed' : 'failed',
      detail: detailOf(result),
    })),
    output: taskOutputOf(process.output),
    kill: () => void process.kill(),
  }
}

function detailOf({ exitCode, signal, sandbox, survivors }: BashResult): string {
  return [
    signal === null ? `exit code ${exitCode}` : `killed by signal ${signal}`,
    ...(sandbox?.denied === true ? ['the sandbox denied something'] : []),
    ...(survivors.length === 0 ? [] : [`still running: ${nameSurvivors(survivors)}`]),
  ].join(', ')
}

/** Both streams of a process, read on from where a reader was: what is new of the one, then of the other. */
export function taskOutputOf({ stdout, stderr }: BashProcess['output']): TaskOutput {
  return {
    get totalBytes() {
      return stdout.totalBytes + stderr.totalBytes
    },
    read([from = 0, errorsFrom = 0]: TaskCursor = []) {
      const out = readOn(stdout, from)
      const errors = readOn(stderr, errorsFrom)
      const between = out.text === '' || out.text.endsWith('\n') ? '' : '\n'
      return {
        text: out.text + (errors.text === '' ? '' : `${between}[stderr]\n${errors.text}`),
        cursor: [out.offset, errors.offset],
        omittedBytes: out.omittedBytes + errors.omittedBytes,
      }
    },
  }
}

interface ReadOn {
  readonly text: string
  readonly offset: number
  readonly omittedBytes: number
}

/** The kept text from `offset` on, with a word where something is missing. */
function readOn(output: CapturedOutput, offset: number): ReadOn {
  const { head, omittedBytes } = output.ends()
  const first = output.readFrom(offset)
  const gapEnd = head.length + omittedBytes
  if (omittedBytes === 0 || offset >= gapEnd)
    return { text: inertText(first.text), offset: first.nextOffset, omittedBytes: 0 }
  const missing = gapEnd - Math.max(offset, head.length)
  const rest = first.lossy ? first : output.readFrom(first.nextOffset)
  const begin = first.lossy ? '' : `${inertText(withoutOpenSequence(first.text))}\n`
  return {
    text: `${begin}[… ${missing} bytes were not kept …]\n${inertText(rest.text)}`,
    offset: rest.nextOffset,
    omittedBytes: missing,
  }
}
