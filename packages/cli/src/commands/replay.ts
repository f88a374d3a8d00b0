import { join } from 'node:path'
import type { Context } from '@dsh/harness/kernel'
import { providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import { planReplay, replaySession } from '@dsh/harness/plugins/replay'
import type { ReplayPlan, ReplayReport } from '@dsh/harness/plugins/replay'
import { headless } from '@dsh/harness/presets/headless'
import type { Session } from '@dsh/harness/session'
import { assertStore, compositionFiles, PluginFailures, tellRowsThatAreOff } from '../composition.ts'
import { endWithin } from '../end.ts'
import { exitCode, usageError } from '../errors.ts'
import { canAsk } from '../person.ts'
import { answerAsks } from '../run/ask.ts'
import { humanFeed } from '../run/feed.ts'
import { workFolder } from '../run/folder.ts'
import { chooseModel } from '../run/model.ts'
import { exitCodeOf } from '../run/outcome.ts'
import { newSessionId } from '../run/session-id.ts'
import { Stop } from '../run/signals.ts'
import { Watch } from '../run/watch.ts'
import { styleOf } from '../style.ts'
import { inert, unbroken } from '../text.ts'
import { seqOf } from '../time/places.ts'
import { replayJson, replayLines } from '../time/replay-text.ts'
import { viewSession } from '../time/view.ts'
import { copyWorkspace } from '../time/workspace-copy.ts'
import type { Arguments, CommandBody } from '../command.ts'
import type { Io } from '../io.ts'

/** How long what was mounted may take to end. */
const endMs = 5000

interface Options {
  readonly model: string
  readonly from: string | undefined
  readonly tools: 'recorded' | 'live'
  readonly directory: string | undefined
  readonly yes: boolean
  readonly json: boolean
}

export const replay: CommandBody = async (args, io) => {
  const options = readOptions(args)
  const stop = new Stop(io)
  try {
    const { home, env } = io
    const { yes } = options
    const files = compositionFiles(home)
    const failures = new PluginFailures(io)
    const onFailure = failures.listener
    const ctx = await headless({ home, env, permission: 'workspace-write', yes, files, onFailure })
    try {
      tellRowsThatAreOff(ctx, io)
      assertStore(ctx, io)
      failures.begin(ctx)
      return await replayIn(ctx, args.words[0] ?? '', { options, stop, io })
    } finally {
      await endWithin(ctx, endMs)
    }
  } finally {
    stop.forget()
  }
}

function readOptions({ values, words }: Arguments): Options {
  const { model, from, tools = 'recorded', directory } = values as Record<string, string | undefined>
  const usage = `dsh replay ${words[0] ?? 'ID'} --model PROVIDER/MODEL`
  if (model === undefined) throw usageError('MISSING_OPTION', 'dsh replay needs --model', usage)
  if (tools !== 'recorded' && tools !== 'live')
    throw usageError(
      'UNKNOWN_TOOLS',
      `tools are recorded or live, not "${unbroken(tools)}"`,
      `${usage} --tools live`,
    )
  return { model, from, tools, directory, yes: values.yes === true, json: values.json === true }
}

interface Job {
  readonly options: Options
  readonly stop: Stop
  readonly io: Io
}

async function replayIn(ctx: Context, word: string, job: Job): Promise<number> {
  const { options, stop, io } = job
  const { model, from, tools, json } = options
  const { provider, model: name } = chooseModel({ asked: model, env: io.env, providers: providerCatalog })
  const source = await viewSession(ctx.sessionPersistence, word, io)
  const { id } = source
  const seq = from === undefined ? undefined : seqOf(from, source, `dsh replay ${id} --model ${model} --from`)
  const plan = planReplay(source, seq)
  const sessionId = newSessionId()
  const workspace = await workspaceOf(ctx, { source, plan, sessionId, job })
  const feed = json ? { show: () => {}, answer: () => {} } : humanFeed(io, { holdAnswer: true })
  const tell = (text: string): void => io.err.line(`note: ${inert(text)}`)
  const watch = new Watch(ctx, sessionId, { folder: workspace, feed, tell })
  if (tools === 'live' && canAsk(io)) answerAsks(ctx, io)
  io.err.line(unbroken(`${provider}/${name} · session ${sessionId} · tools ${tools} · ${workspace}`))
  const report = await replaySession({
    ctx,
    source,
    plan,
    route: { provider, model: name },
    sessionId,
    workspace,
    tools,
    // Only in the copy: what the old session was allowed is no leave for the new one.
    ...(tools === 'live' ? { permission: 'workspace-write' as const } : {}),
    signal: stop.signal,
  })
  if (json) io.out.line(JSON.stringify(replayJson(report, sessionId)))
  else for (const each of replayLines(report, styleOf('out', io))) io.out.line(each)
  io.err.line(`session ${sessionId} · look at it: ${io.command} session show ${sessionId}`)
  return codeOf(report, { job, wasDenied: watch.wasDenied, sessionId })
}

/** What was asked for ran to its end; else a divergence, like every other failure, is told by the code. */
function codeOf(
  { end, divergence, replayed }: ReplayReport,
  {
    job,
    wasDenied,
    sessionId,
  }: { readonly job: Job; readonly wasDenied: boolean; readonly sessionId: string },
): number {
  const { stop, options } = job
  if (stop.exitCode !== undefined) return stop.exitCode
  if (divergence !== undefined && options.tools === 'recorded') return exitCode.failed
  if (end === undefined || replayed.end === undefined) return exitCode.failed
  const usage = { inputTokens: 0, outputTokens: 0 }
  return exitCodeOf({ sessionId, end, usage, changedFiles: [], wasDenied })
}

interface Place {
  readonly source: Session
  readonly plan: ReplayPlan
  readonly sessionId: string
  readonly job: Job
}

/** Where the new session works. Live tools never touch the folder of the old one, unless `-C` names it. */
async function workspaceOf(ctx: Context, { source, plan, sessionId, job }: Place): Promise<string> {
  const { options, io } = job
  if (options.directory !== undefined) return await workFolder(io.cwd, options.directory)
  const own = source.header.cwd ?? io.cwd
  if (options.tools === 'recorded') return own
  const point = ctx.get('rewind')?.pointAt(source, plan.turns[0]?.firstSeq ?? 0)
  if (point === undefined)
    throw usageError(
      'NO_RESTORE_POINT',
      `session ${source.id} has no restore point as old as its turn ${plan.turns[0]?.turn ?? 1}, so its folder cannot be copied`,
      `dsh replay ${source.id} --model ${options.model} --tools live -C FOLDER`,
    )
  const folder = join(io.home, 'replays', sessionId)
  const files = await copyWorkspace(ctx.rewind, point, folder)
  io.err.line(unbroken(`${files} files as they were at event #${point.after} are in ${folder}`))
  return await workFolder(io.cwd, folder)
}
