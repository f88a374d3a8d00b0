import type { Session } from '../session/index.ts'
import { wellFormed } from '../tools/index.ts'
import type { CommandResult } from './command.ts'

/** A frozen result; nothing at all is a success. Throws a TypeError for what is no result. */
export function toCommandResult(output: CommandResult | void, name: string, session: Session): CommandResult {
  if (output === undefined) return Object.freeze({ kind: 'success' })
  const { kind, text, sourceEventSeq } = output as {
    readonly kind: unknown
    readonly text?: unknown
    readonly sourceEventSeq?: unknown
  }
  if (text !== undefined && typeof text !== 'string') throw new TypeError(`/${name} gave a text that is none`)
  if (kind === 'error') {
    if (text === undefined || text.trim() === '') throw new TypeError(`/${name} failed without saying why`)
    return Object.freeze({ kind, text: wellFormed(text) })
  }
  if (kind !== 'success') throw new TypeError(`/${name} gave neither success nor error`)
  return Object.freeze({
    kind,
    ...(text === undefined ? {} : { text: wellFormed(text) }),
    ...(sourceEventSeq === undefined ? {} : { sourceEventSeq: toSource(sourceEventSeq, name, session) }),
  })
}

function toSource(seq: unknown, name: string, session: Session): number {
  const event = typeof seq === 'number' ? session.at(seq) : undefined
  if (event === undefined)
    throw new TypeError(`/${name} names the event ${String(seq)}, which the log does not have`)
  if (event.type === 'command/run' || event.type === 'command/done') {
    throw new TypeError(`/${name} names the event ${event.seq}, which is itself one of a command`)
  }
  return event.seq
}
