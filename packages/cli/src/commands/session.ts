import { homedir } from 'node:os'
import type { StoredSession, SessionRow } from '@dsh/harness/session'
import { sessionReader } from '@dsh/harness/presets/headless'
import type { SessionReader } from '@dsh/harness/presets/headless'
import { nearest } from '@dsh/harness/kernel'
import { linesOf } from '../lines.ts'
import { findSession } from '../sessions.ts'
import { usageError } from '../errors.ts'
import { inert, unbroken } from '../text.ts'
import { Transcript } from '../transcript.ts'
import type { CommandBody } from '../command.ts'
import type { Io, Output } from '../io.ts'

type Action = (reader: SessionReader, word: string | undefined, io: Io) => Promise<void>

export const session: CommandBody = async ({ values, words }, io) => {
  const [name, word, ...extra] = words
  const actions: Readonly<Record<string, Action>> = {
    ls: reader => list(reader, io, values.json === true ? jsonRow : humanRow),
    show,
    cat,
  }
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action === undefined) {
    const what = name === undefined ? 'nothing' : `"${name}"${nearest(name, Object.keys(actions))}`
    throw usageError('UNKNOWN_ACTION', `dsh session does ls, show or cat; found ${what}`, 'dsh session ls')
  }
  const needsId = name !== 'ls'
  if (needsId && word === undefined)
    throw usageError('MISSING_ID', `dsh session ${name} needs the id of a session`, 'dsh session ls')
  const surplus = needsId ? extra[0] : word
  if (surplus !== undefined)
    throw usageError('UNEXPECTED_WORD', `dsh session ${name} takes no "${surplus}"`, 'dsh session --help')
  if (name === 'show' && values.json === true)
    throw usageError(
      'UNEXPECTED_OPTION',
      'dsh session show prints text; cat prints JSON',
      `dsh session cat ${word}`,
    )
  const reader = await sessionReader({ home: io.home })
  try {
    await action(reader, word, io)
  } finally {
    await reader.close()
  }
  return 0
}

async function list(reader: SessionReader, io: Io, format: (row: SessionRow) => string): Promise<void> {
  const rows = [...(await reader.sessions.list())].toSorted((a, b) => timeOf(b) - timeOf(a))
  if (rows.length === 0) io.err.line(`no sessions in ${io.home} yet`)
  for (const row of rows) io.out.line(format(row))
}

/** A row that cannot be read has no time; it stands last. */
function timeOf(row: SessionRow): number {
  return 'header' in row ? row.updatedAt : 0
}

function jsonRow(row: SessionRow): string {
  if (!('header' in row)) return JSON.stringify(row)
  const { id, header, updatedAt, path } = row
  const { createdAt, cwd, parentSession, origin } = header
  return JSON.stringify({
    id,
    createdAt,
    updatedAt: Math.round(updatedAt),
    cwd,
    parentSession,
    origin,
    path,
  })
}

function humanRow(row: SessionRow): string {
  if (!('header' in row)) return unbroken(`${row.id}  unreadable: ${row.problem}`)
  const { cwd = '' } = row.header
  const below = cwd.startsWith(`${homedir()}/`) ? `~${cwd.slice(homedir().length)}` : cwd
  return unbroken(`${row.id}  ${localTime(row.updatedAt)}  ${below}`)
}

/** `2026-11-30 14:05`, in the zone of the machine. */
function localTime(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000)
  return date.toISOString().slice(0, 16).replace('T', ' ')
}

async function show(reader: SessionReader, word: string | undefined, io: Io): Promise<void> {
  const { id } = await findSession(reader.sessions, word ?? '')
  const stored = await reader.sessions.inspect(id)
  tellState(stored, io.err)
  const transcript = new Transcript(stored.header.cwd)
  const style = { color: io.out.isTerminal && io.env.NO_COLOR === undefined }
  for (const event of stored.events) {
    const entry = transcript.next(event)
    if (entry !== undefined) io.out.write(linesOf(entry, style))
  }
}

const eventsAtOnce = 500

async function cat(reader: SessionReader, word: string | undefined, io: Io): Promise<void> {
  const { id } = await findSession(reader.sessions, word ?? '')
  const stored = await reader.sessions.readFrom(id, 0)
  tellState(stored, io.err)
  for (const [at, event] of stored.events.entries()) {
    io.out.line(JSON.stringify(event))
    if (at % eventsAtOnce === 0) await io.out.flush()
    if (io.out.failure !== undefined) return
  }
}

/** What a reader must know beside the events. */
function tellState({ readOnly, holder, gaps = [] }: StoredSession, err: Output): void {
  if (readOnly !== undefined) err.line(`the session is read-only: ${inert(readOnly)}`)
  else if (holder !== undefined) err.line(`the session is open in process ${holder.pid}`)
  for (const { fromSeq, toSeq, bytes, reason } of gaps)
    err.line(`damaged: events ${fromSeq} to ${toSeq}, ${bytes} bytes: ${inert(reason)}`)
}
