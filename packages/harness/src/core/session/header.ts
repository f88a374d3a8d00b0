import { win32 } from 'node:path'
import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionHeader, SessionId } from '@dsh/protocol'
import { adopt, isCount, isFields, isText } from '../../kernel/index.ts'
import { SessionError, SessionFormatUnsupportedError } from './errors.ts'

/** The last moment that a date can name, in ms. */
const lastTime = 8.64e15

/** A frozen copy of `given`, checked; the least there may be where it is undefined. */
export function readHeader(id: SessionId, given: unknown): SessionHeader {
  if (!isText(id)) throw new SessionError('INVALID_HEADER', 'a session id is a non-empty string')
  if (given === undefined) {
    return Object.freeze({ version: sessionFormatVersion, id, createdAt: Date.now() })
  }
  if (!isFields(given)) throw invalid(id, 'it is no record')
  const header = adopt(given, 'header')
  if (header['version'] !== sessionFormatVersion) {
    throw new SessionFormatUnsupportedError(`session "${id}"`, header['version'], sessionFormatVersion)
  }
  if (header['id'] !== id) throw invalid(id, `it names session "${String(header['id'])}"`)
  const { createdAt } = header
  if (!isCount(createdAt) || createdAt > lastTime)
    throw invalid(id, 'createdAt is not a time in milliseconds')
  for (const [key, isRight, right] of optional) {
    const value = header[key]
    if (value !== undefined && !isRight(value)) throw invalid(id, `${key} is not ${right}`)
  }
  return header as unknown as SessionHeader
}

const optional: readonly (readonly [key: string, isRight: (value: unknown) => boolean, right: string])[] = [
  // The rule of Windows takes the paths of every system: a log may have been written on another one.
  ['cwd', value => typeof value === 'string' && win32.isAbsolute(value), 'an absolute path'],
  ['parentSession', isText, 'a session id'],
  ['seedLength', isCount, 'a count'],
  ['origin', value => value === 'subagent' || value === 'replay', '"subagent" or "replay"'],
  ['delegationDepth', isCount, 'a count'],
  ['agentPreset', isText, 'a name'],
]

function invalid(id: SessionId, problem: string): SessionError {
  return new SessionError('INVALID_HEADER', `header of session "${id}": ${problem}`)
}
