import { ExportError, readExport } from '@dsh/harness/plugins/session-export'
import type { PortableSession } from '@dsh/harness/plugins/session-export'
import type { SessionPersistence } from '@dsh/harness/session'
import type { SessionId } from '@dsh/protocol'
import { CliError, exitCode } from '../../errors.ts'
import { TextFileError, textLines } from '../../text-lines.ts'
import { newSessionId } from '../../run/session-id.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const importSession: CommandBody = async ({ words: [file = ''] }, io) => {
  const portable = await readPortable(file)
  return withReader(io, async ({ sessions }) => {
    const asked = portable.header.id
    const id = await store(sessions, portable)
    const { length } = portable.events
    const how = portable.redacted ? '; what had been taken out of it is not in it' : ''
    const why = isPlain(asked) ? `${asked} is taken` : 'the one in the file could not be typed'
    const other = id === asked ? '' : `, since ${why}`
    io.out.line(id)
    io.err.line(`session ${id}${other}: ${length} events${how}`)
    return 0
  })
}

async function readPortable(file: string): Promise<PortableSession & { readonly redacted: boolean }> {
  try {
    return await readExport(textLines(file))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const isForeign = cause instanceof ExportError
    const isSaid = isForeign || cause instanceof TextFileError
    const why = isSaid ? cause.message : `it cannot be read (${code ?? String(cause)})`
    throw new CliError(isForeign ? cause.code : 'INPUT_FILE', `"${file}" cannot be imported: ${why}`, {
      cause,
      exitCode: exitCode.usage,
      fix: 'dsh session export ID --format jsonl --full -o FILE.jsonl',
    })
  }
}

/** Whether a person can type the id, and a terminal show it. */
function isPlain(id: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,99}$/.test(id)
}

/** A taken id is given to nobody else, and an odd one to nobody at all: the session then gets one of its own. */
async function store(
  sessions: SessionPersistence,
  { header, events, artifacts }: PortableSession,
): Promise<SessionId> {
  const isTaken = (await sessions.list()).some(({ id }) => id === header.id)
  const id = isTaken || !isPlain(header.id) ? newSessionId() : header.id
  await sessions.create({ ...header, id })
  await sessions.append(id, events, artifacts)
  return id
}
