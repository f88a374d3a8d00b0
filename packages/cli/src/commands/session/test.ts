import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
  differenceLines,
  readRecording,
  recordSession,
  runRecording,
  withRequests,
  writeRecording,
} from '@dsh/harness/plugins/replay'
import { Redaction } from '@dsh/harness/plugins/session-export'
import { headless } from '@dsh/harness/presets/headless'
import { compositionFiles } from '../../composition.ts'
import { CliError, exitCode, usageError } from '../../errors.ts'
import { takenOutText, unwritable } from '../../export/giving-away.ts'
import { ownSecrets } from '../../own-secrets.ts'
import { errorLines, reportOf } from '../../report-error.ts'
import { ownFolder } from '../../place-and-time.ts'
import { Stop } from '../../run/signals.ts'
import { counted, unbroken } from '../../text.ts'
import { viewSession } from '../../time/view.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { withReader } from './reader.ts'

export const test: CommandBody = async ({ words: [action, ...words], values }, io) => {
  if (action === 'run') return await run(words, { update: values.update === true, io })
  if (action === 'record' && values.update === undefined) return await record(words, io)
  if (action === 'record')
    throw usageError(
      'OPTION_CONFLICT',
      '--update is for recordings that are there',
      'dsh session test run FILE --update',
    )
  const found = action === undefined ? 'nothing' : `"${unbroken(action)}"`
  throw usageError(
    'UNKNOWN_ACTION',
    `dsh session test does record or run; found ${found}`,
    'dsh session test --help',
  )
}

async function record([word, file, ...more]: readonly string[], io: Io): Promise<number> {
  const usage = 'dsh session test record ID [FILE]'
  if (word === undefined) throw usageError('MISSING_WORD', 'dsh session test record needs ID', usage)
  if (more.length > 0)
    throw usageError(
      'UNEXPECTED_WORD',
      `dsh session test record takes no "${unbroken(more[0] ?? '')}"`,
      usage,
    )
  return await withReader(io, async ({ sessions }) => {
    const session = await viewSession(sessions, word, io)
    const { id } = session
    const redaction = new Redaction({ secrets: ownSecrets(io) })
    const recording = recordSession(session, { home: ownFolder(), redaction })
    const target = file ?? `${id}.recording.jsonl`
    // 'wx' never replaces what somebody has there.
    await writeFile(resolve(io.cwd, target), writeRecording(recording), { flag: 'wx' }).catch(
      (cause: unknown) => {
        throw unwritable(target, { cause, instead: `dsh session test record ${id} /tmp/${id}.jsonl` })
      },
    )
    io.out.line(`${counted(recording.requests.length, 'request')} recorded in ${unbroken(target)}`)
    io.err.line(takenOutText(redaction))
    return exitCode.ok
  })
}

interface RunOptions {
  readonly update: boolean
  readonly io: Io
}

async function run(files: readonly string[], options: RunOptions): Promise<number> {
  const { io } = options
  if (files.length === 0)
    throw usageError('MISSING_WORD', 'dsh session test run needs FILE', 'dsh session test run FILE…')
  const stop = new Stop(io)
  let failed = 0
  try {
    for (const file of files) {
      stop.signal.throwIfAborted()
      if (!(await runOne(file, stop.signal, options))) failed++
    }
  } catch (error) {
    if (stop.exitCode === undefined) throw error
    return stop.exitCode
  } finally {
    stop.forget()
  }
  if (files.length > 1)
    io.out.line(
      `${counted(files.length, 'recording')}, ${failed === 0 ? 'all as they were' : `${failed} failed`}`,
    )
  return failed === 0 ? exitCode.ok : exitCode.failed
}

/** Whether the recording in `file` asks what it asked. A file that is none fails alone. */
async function runOne(file: string, signal: AbortSignal, { update, io }: RunOptions): Promise<boolean> {
  const name = unbroken(file)
  const path = resolve(io.cwd, file)
  try {
    const recording = readRecording(await textOf(path, name), name)
    const { difference, made } = await inNewHome(io, (ctx, workspace) =>
      runRecording(recording, { ctx, workspace, home: ownFolder(), goOn: update, signal }),
    )
    const updated = update && difference !== undefined ? withRequests(recording, made) : undefined
    if (updated !== undefined) {
      await writeFile(path, writeRecording(updated))
      io.out.line(`↻ ${name}: written anew, ${counted(made.length, 'request')}`)
      return true
    }
    if (difference === undefined) {
      io.out.line(`✓ ${name}: ${counted(made.length, 'request')} as recorded`)
      return true
    }
    io.out.line(`✗ ${name}`)
    for (const line of differenceLines(difference)) io.out.line(`  ${unbroken(line)}`)
    return false
  } catch (error) {
    signal.throwIfAborted()
    io.out.line(`✗ ${name}`)
    io.err.write(errorLines(reportOf(error)))
    return false
  }
}

async function textOf(path: string, name: string): Promise<string> {
  return await readFile(path, 'utf8').catch((cause: unknown) => {
    const { code } = cause as NodeJS.ErrnoException
    throw new CliError('UNREADABLE_FILE', `"${name}" cannot be read (${code ?? String(cause)})`, { cause })
  })
}

type Job<T> = (ctx: Awaited<ReturnType<typeof headless>>, workspace: string) => Promise<T>

/** The person's own composition, with a home and a workspace that are gone afterwards. */
async function inNewHome<T>({ env, home: own }: Io, job: Job<T>): Promise<T> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'dsh-recording-')))
  try {
    const [home, workspace] = [join(root, 'home'), await mkdtemp(join(root, 'workspace-'))]
    const ctx = await headless({
      home,
      env,
      permission: 'workspace-write',
      yes: true,
      files: compositionFiles(own),
    })
    try {
      return await job(ctx, workspace)
    } finally {
      await ctx.dispose()
    }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}
