import { stat } from 'node:fs/promises'
import type { Rewind, RewindOptions, RewindScope, RewindTarget } from '@dsh/harness/plugins/rewind'
import type { Session, SessionPersistence } from '@dsh/harness/session'
import type { SessionId } from '@dsh/protocol'
import { CliError, exitCode, quoted, usageError } from '../errors.ts'
import { isConfirmed } from '../person.ts'
import { workFolder } from '../run/folder.ts'
import { newSessionId } from '../run/session-id.ts'
import { findSession, newestSession } from '../sessions.ts'
import { isSeqWord, seqOf } from '../time/places.ts'
import type { Arguments, CommandBody } from '../command.ts'
import type { Io } from '../io.ts'
import { previewLines, questionOf, resultLines, rowLines } from '../rewind/text.ts'
import { withRewind } from '../rewind/with-rewind.ts'

export const rewind: CommandBody = (args, io) =>
  withRewind(io, async (service, ctx) => {
    const { id, at } = await wishOf(args, ctx.sessionPersistence, io)
    const session = await whole(id, service, ctx.sessionPersistence)
    if (at === undefined) return list(session, service, { args, io })
    const target = at === 'undo' ? at : seqOf(at, session, `${io.command} rewind ${id}`)
    await assertFree(session, ctx.sessionPersistence, io)
    if (args.values['conversation'] !== true) await assertFolder(session, io)
    return await go(session, service, { args, io, target })
  })

/** With what a rewind logged that was broken off, once it is completed. */
async function whole(id: SessionId, service: Rewind, store: SessionPersistence): Promise<Session> {
  const session = await store.view(id)
  return (await service.recover(session)) ? await store.view(id) : session
}

interface Wish {
  readonly id: SessionId
  /** Absent where the points are to be listed. */
  readonly at?: string
}

/** A lone number, shorter than the id of a session, is an event of the newest session here. */
async function wishOf({ values, words }: Arguments, store: SessionPersistence, io: Io): Promise<Wish> {
  const [first, second] = words
  const isSeq = second === undefined && first !== undefined && first.length < 10 && isSeqWord(first)
  const word = isSeq ? undefined : first
  const at = isSeq ? first : second
  const row =
    word === undefined
      ? await newestSession(store, await workFolder(io.cwd, undefined))
      : await findSession(store, word)
  if (values['undo'] === true) {
    if (at !== undefined)
      throw usageError('UNEXPECTED_WORD', `--undo takes no event`, `${io.command} rewind --help`)
    return { id: row.id, at: 'undo' }
  }
  return at === undefined ? { id: row.id } : { id: row.id, at }
}

function list(
  session: Session,
  service: Rewind,
  { args, io }: { readonly args: Arguments; readonly io: Io },
): number {
  const rows = service.list(session)
  if (args.values['json'] === true) for (const row of rows) io.out.line(JSON.stringify(row))
  else if (rows.length === 0) io.err.line(`session ${session.id} has no restore points`)
  else io.out.write(rowLines(rows, session))
  return exitCode.ok
}

/** What would only come out when half is done. */
async function assertFree({ id }: Session, store: SessionPersistence, io: Io): Promise<void> {
  const { holder } = await store.inspect(id)
  if (holder !== undefined)
    throw new CliError('SESSION_HELD', `session ${id} is open in process ${holder.pid}`, {
      fix: `${io.command} session show ${id}`,
    })
}

async function assertFolder({ id, header: { cwd } }: Session, io: Io): Promise<void> {
  const isThere =
    cwd !== undefined &&
    (await stat(cwd).then(
      found => found.isDirectory(),
      () => false,
    ))
  if (!isThere)
    throw usageError(
      'SESSION_FOLDER_GONE',
      `the folder "${cwd ?? ''}" of session ${id} is not there`,
      cwd === undefined ? `${io.command} session show ${id}` : `mkdir -p ${quoted(cwd)}`,
    )
}

interface Order {
  readonly args: Arguments
  readonly io: Io
  readonly target: RewindTarget
}

async function go(session: Session, service: Rewind, { args, io, target }: Order): Promise<number> {
  const { values } = args
  const scope = scopeOf(args)
  const first = await service.preview(session, target, { scope }).catch((error: unknown) => {
    throw withFix(error, session.id, target, io)
  })
  const conflicts = first.files.flatMap(({ path, reason }) => (reason === 'changed-by-user' ? [path] : []))
  const overwrite = values['overwrite'] === true ? conflicts : []
  const preview =
    overwrite.length === 0 ? first : await service.preview(session, target, { scope, overwrite })
  const isJson = values['json'] === true
  if (isJson) io.out.line(JSON.stringify({ type: 'preview', session: session.id, target, ...preview }))
  else io.out.write(previewLines(preview, session.id))
  if (values['preview'] === true) return exitCode.ok
  if (values['yes'] !== true && !(await isConfirmed(questionOf(preview), io)))
    throw new CliError('NOT_CONFIRMED', 'nothing was changed', {
      exitCode: exitCode.denied,
      fix: `${io.command} rewind ${session.id} ${target === 'undo' ? '--undo' : target} --yes`,
    })
  const options: RewindOptions = { scope, overwrite, childId: newSessionId() }
  const result = await service.apply(session, target, options).catch((error: unknown) => {
    throw withFix(error, session.id, target, io)
  })
  if (isJson) io.out.line(JSON.stringify({ type: 'result', ...result }))
  else io.out.write(resultLines(result, session.id, io.command))
  return exitCode.ok
}

function scopeOf({ values }: Arguments): RewindScope {
  const given = scopes.filter(scope => values[scope] === true)
  if (given.length > 1)
    throw usageError(
      'CONFLICTING_OPTIONS',
      `--${given.join(' and --')} exclude each other`,
      'dsh rewind --help',
    )
  return given[0] ?? 'both'
}

const scopes: readonly RewindScope[] = ['files', 'conversation', 'both']

function withFix(error: unknown, id: SessionId, target: RewindTarget, io: Io): unknown {
  const { code, message } = error as { code?: string; message: string }
  const fixes: Readonly<Record<string, string>> = {
    REWIND_NOTHING_TO_UNDO: `${io.command} rewind ${id}`,
    REWIND_NO_POINT: `${io.command} rewind ${id} ${target} --conversation`,
    ...(target === 'undo' ? { SESSION_NOT_FOUND: `${io.command} rewind ${id} --undo --files` } : {}),
  }
  const fix = code !== undefined && Object.hasOwn(fixes, code) ? fixes[code] : undefined
  return fix === undefined || code === undefined
    ? error
    : new CliError(code, message, { cause: error, exitCode: exitCode.usage, fix })
}
