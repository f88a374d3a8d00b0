import { open, unlink } from 'node:fs/promises'
import { exportLines, Redaction } from '@dsh/harness/plugins/session-export'
import type { RedactionOptions } from '@dsh/harness/plugins/session-export'
import type { Session, StoredSession } from '@dsh/harness/session'
import { usageError } from '../../errors.ts'
import { takenOutText, unwritable } from '../../export/giving-away.ts'
import { ownSecrets } from '../../own-secrets.ts'
import { ownFolder } from '../../place-and-time.ts'
import { findSession } from '../../sessions.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { tellState, withReader } from './reader.ts'

const formats = ['md', 'html', 'jsonl'] as const
type Format = (typeof formats)[number]

export const exportSession: CommandBody = ({ values, words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const format = formatOf(values.format, values.output)
    const { id } = await findSession(sessions, word)
    const stored = await sessions.inspect(id)
    tellState(stored, io.err)
    const options = values.full === true ? undefined : { secrets: ownSecrets(io), home: ownFolder() }
    const redaction = options && new Redaction(options)
    // A session that names no artifact is not read twice.
    let view: Promise<Session> | undefined
    const artifact = async (sha256: string): Promise<Uint8Array | undefined> =>
      (await (view ??= sessions.view(id))).artifacts.get(sha256)
    const lines =
      format === 'jsonl'
        ? exportLines({ ...stored, artifact }, redaction)
        : await documentPieces(stored, format, { redaction, options })
    await write(lines, values.output, io)
    io.err.line(takenOutText(redaction))
    return 0
  })

function formatOf(asked: string | boolean | undefined, file: string | boolean | undefined): Format {
  const ending = typeof file === 'string' ? /[^/\\]\.([^./\\]+)$/.exec(file)?.[1] : undefined
  const name = asked ?? ending ?? 'md'
  const format = formats.find(each => each === name)
  if (format !== undefined) return format
  throw usageError(
    'UNKNOWN_FORMAT',
    `sessions are exported as md, html or jsonl, not as "${String(name)}"`,
    'dsh session export --help',
  )
}

async function documentPieces(
  { header, events }: StoredSession,
  format: 'md' | 'html',
  {
    redaction,
    options,
  }: { readonly redaction?: Redaction | undefined; readonly options?: RedactionOptions | undefined },
): Promise<Iterable<string>> {
  const { documentOf } = await import('../../export/document.ts')
  const filters =
    redaction === undefined ? {} : { entryFilter: redaction, headFilter: new Redaction(options) }
  const document = documentOf({ header, events, ...filters })
  if (format === 'md') return (await import('../../export/markdown.ts')).markdownOf(document)
  return (await import('../../export/html.ts')).htmlOf(document)
}

async function write(
  lines: Iterable<string> | AsyncIterable<string>,
  file: string | boolean | undefined,
  io: Io,
): Promise<void> {
  if (typeof file !== 'string') {
    for await (const text of inParts(lines)) {
      io.out.write(text)
      await io.out.flush()
      if (io.out.failure !== undefined) return
    }
    return
  }
  const fail = (cause: unknown): never => {
    throw unwritable(file, { cause, instead: 'dsh session export ID -o /tmp/session.md' })
  }
  // 'wx' never replaces what somebody has there.
  const handle = await open(file, 'wx', 0o600).catch(fail)
  try {
    // Unlike `write` it goes on where the system took only a part.
    for await (const text of inParts(lines)) await handle.appendFile(text).catch(fail)
    await handle.sync().catch(fail)
  } catch (error) {
    // Half a session must not look like one.
    await unlink(file).catch(() => undefined)
    throw error
  } finally {
    await handle.close()
  }
  io.err.line(`written to ${file}`)
}

const partLength = 256 * 1024

/** So much of them at once that a long session takes few writes, and so little that it does not fill the memory. */
async function* inParts(lines: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  let part = ''
  for await (const line of lines) {
    part += line
    if (part.length < partLength) continue
    yield part
    part = ''
  }
  if (part !== '') yield part
}
