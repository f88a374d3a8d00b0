import { isAbsolute, relative } from 'node:path'
import type { Context } from '@dsh/harness/kernel'
import { momentAt } from '@dsh/harness/plugins/time-travel'
import type { Session } from '@dsh/harness/session'
import { CliError, quoted, usageError } from '../../errors.ts'
import { inert, oneLine } from '../../text.ts'
import { filesThen } from '../../time/files-then.ts'
import { momentLines } from '../../time/moment-text.ts'
import type { ShownMoment } from '../../time/moment-text.ts'
import { compareMoments, momentsLines } from '../../time/moments-text.ts'
import { numberOf, seqOf } from '../../time/places.ts'
import { viewAsOf } from '../../time/view.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const at: CommandBody = ({ words: [word = '', event = ''], values }, io) =>
  withReader(io, async ({ sessions, ctx }) => {
    const { diff, file, json } = values
    const last = typeof diff === 'string' ? Math.max(numberOf(event), numberOf(diff)) : numberOf(event)
    const session = await viewAsOf({ sessions, ctx }, word, { seq: last, io })
    const command = `dsh session at ${session.id}`
    if (diff !== undefined && file !== undefined)
      throw usageError(
        'OPTION_CONFLICT',
        '--file prints one moment, --diff compares two',
        `${command} ${event} --file ${quoted(String(file))}`,
      )
    const seq = seqOf(event, session, command)
    if (typeof file === 'string') {
      const text = await contentOf(file, { ctx, session, seq, command })
      io.out.write(io.out.isTerminal ? inert(text) : text)
      return 0
    }
    const shown = await show(ctx, session, seq)
    if (typeof diff === 'string') {
      const compared = compareMoments(shown, await show(ctx, session, seqOf(diff, session, command)))
      if (json === true) io.out.line(JSON.stringify(compared))
      else for (const line of momentsLines(compared)) io.out.line(line)
      return 0
    }
    if (json === true) io.out.line(JSON.stringify(toJson(shown)))
    else for (const line of momentLines(shown)) io.out.line(line)
    return 0
  })

async function show(ctx: Context, session: Session, seq: number): Promise<ShownMoment> {
  const { values, problems = {} } = ctx.get('sessionProjections')?.at(session, seq) ?? {}
  return { moment: momentAt(session, seq), values, problems, files: await filesThen(ctx, session, seq) }
}

function toJson({ moment, values, problems, files }: ShownMoment): object {
  const { event, cursor, calls, request, isAsking, history, header, queued } = moment
  return {
    seq: event.seq,
    type: event.type,
    time: event.time,
    turn: cursor.openTurn ?? null,
    step: cursor.openStep ?? null,
    lastTurn: cursor.lastTurn,
    calls,
    request: request ?? null,
    isAsking,
    header: header ?? null,
    messages: history.messages,
    messageSeqs: history.seqs,
    queued,
    projections: values ?? null,
    ...(Object.keys(problems).length === 0 ? {} : { problems }),
    files: 'missing' in files ? null : files.list,
    ...('missing' in files ? { filesMissing: files.missing } : { filesAfter: files.point.after }),
  }
}

interface Place {
  readonly ctx: Context
  readonly session: Session
  readonly seq: number
  readonly command: string
}

/** What a file held. Throws where that is not known, where there was none, and where it was no text. */
async function contentOf(file: string, { ctx, session, seq, command }: Place): Promise<string> {
  const files = await filesThen(ctx, session, seq)
  if ('missing' in files)
    throw new CliError('FILES_UNKNOWN', `the files at event #${seq} are not known: ${files.missing}`, {
      fix: `dsh session show ${session.id}`,
    })
  const path = isAbsolute(file) ? relative(files.point.workspace, file) : file.replace(/^(\.\/)+/, '')
  const bytes = await ctx.rewind.read(files.point, path)
  if (bytes === undefined)
    throw new CliError('NO_SUCH_FILE', `there was no file "${oneLine(path)}" at event #${seq}`, {
      fix: `${command} ${seq}`,
    })
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new CliError('NOT_TEXT', `"${oneLine(path)}" held ${bytes.length} bytes that are no text`, {
      cause,
    })
  }
}
