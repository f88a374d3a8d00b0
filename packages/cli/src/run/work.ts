import type { Agent } from '@dsh/harness/agent'
import { createUserMessage } from '@dsh/harness/llm'
import type {} from '@dsh/harness/plugins/recovery'
import type { Session } from '@dsh/harness/session'
import type { MessageSource, UserMessage } from '@dsh/protocol'
import { correctionFor } from './answer-schema.ts'
import { answerAsks } from './ask.ts'
import { canAsk } from '../person.ts'
import { humanFeed, jsonFeed } from './feed.ts'
import type { Job, Talk } from './job.ts'
import { writeLastModel } from './last-model.ts'
import type { ModelChoice } from './model.ts'
import { openSession, targetOf } from './open.ts'
import type { Target } from './open.ts'
import { tellPermission } from './permission.ts'
import { tellOutcome } from './report.ts'
import type { Stop } from './signals.ts'
import { Watch } from './watch.ts'
import { endWithin } from '../end.ts'
import { exitCode } from '../errors.ts'
import { errorLines, reportOf } from '../report-error.ts'
import { inert, unbroken } from '../text.ts'
import { withFix } from '../with-fix.ts'

/** How long a cancelled turn may take to end, and then what was mounted. */
const endMs = 5000

/** One run, from the session it works in to the exit code. Throws where no turn began. */
export async function work(job: Job): Promise<number> {
  const { ctx, io } = job
  try {
    const code = await runIn(await targetOf(job), job)
    const failure = await endWithin(ctx, endMs)
    if (failure === undefined || code !== exitCode.ok) return code
    io.err.write(errorLines(reportOf(failure)))
    return exitCode.failed
  } catch (error) {
    await endWithin(ctx, endMs)
    throw error
  }
}

async function runIn(target: Target, job: Job): Promise<number> {
  const { ctx, options, io, schema, stop } = job
  const feed = options.json ? jsonFeed(io) : humanFeed(io, { holdAnswer: schema !== undefined })
  const tell = (text: string): void => io.err.line(`note: ${inert(text)}`)
  const watch = new Watch(ctx, target.id, { folder: target.folder, feed, tell })
  const { handle, choice } = await openSession(target, job).catch((error: unknown) => {
    throw withFix(error, io, target.id)
  })
  const { session } = handle.agent
  for (const line of startLines(choice, target)) io.err.line(line)
  for (const notice of handle.notices ?? []) tell(notice)
  await tellRecovery(session, job)
  stop.signal.throwIfAborted()
  // A session keeps the mode it began in until somebody names another.
  const { permission = target.isNew ? ctx.sandboxPolicy.modeOf(session) : undefined } = options
  if (permission !== undefined) ctx.sandboxPolicy.setMode(session, permission)
  tellPermission(session, job)
  if (canAsk(io)) answerAsks(ctx, io)
  const talk = await converse(handle.agent, watch, job)
  if (options.model !== undefined && watch.tally.hasAnswer) await keepModel(choice, job)
  return await tellOutcome(talk, { watch, feed, target, choice, job })
}

/** Before anything new is logged: what the end of an earlier program left. */
async function tellRecovery(session: Session, { ctx, io, stop }: Job): Promise<void> {
  const report = await ctx.get('recovery')?.report(session, stop.signal)
  if (report === undefined) return
  const { recoveredLines } = await import('./recovered.ts')
  for (const line of recoveredLines(report, session.header.cwd)) io.err.line(line)
}

function startLines(
  { provider, model, reason, keyEnv }: ModelChoice,
  { id, folder, isNew }: Target,
): string[] {
  const route = `${provider}/${model}${keyEnv === undefined ? '' : ` (key in ${keyEnv})`}`
  const line = unbroken(`${route} · ${isNew ? 'new session' : 'session'} ${id} · ${folder}`)
  const demo = 'no key was found, so the demo model answers from a script; `dsh models` shows what to set'
  return reason === 'demo' ? [demo, line] : [line]
}

/** The turn of the prompt, and where the answer does not fit the schema, one more. */
async function converse(agent: Agent, watch: Watch, job: Job): Promise<Talk> {
  const { prompt, schema, options, stop, io } = job
  stop.signal.addEventListener('abort', () => agent.cancel({ kind: 'user' }), { once: true })
  // Whoever reads the events is gone: nothing more of this run would be seen.
  if (options.json)
    io.out.onFailure(() => agent.cancel({ kind: 'hook', reason: 'standard output was closed' }))
  if (schema !== undefined) agent.inject(say(schema.instructions, schemaSource('instructions')))
  await turn(agent, say(prompt, { kind: 'user' }), stop)
  const { tally } = watch
  if (schema === undefined || tally.end?.kind !== 'completed') return { answer: tally.answer }
  let checked = schema.check(tally.answer)
  if ('problems' in checked) {
    await turn(agent, say(correctionFor(checked.problems), schemaSource('notice')), stop)
    if (tally.end?.kind !== 'completed') return { answer: '' }
    checked = schema.check(tally.answer)
  }
  if ('json' in checked) return { answer: checked.json }
  const message = `the answer does not fit the schema: ${checked.problems}`
  return { answer: '', failure: { code: 'SCHEMA_MISMATCH', message } }
}

async function turn(agent: Agent, message: UserMessage, stop: Stop): Promise<void> {
  agent.followup(message)
  await Promise.race([agent.whenIdle(), stop.graceOf(endMs)])
}

function say(text: string, source: MessageSource): UserMessage {
  return createUserMessage({ content: [{ type: 'text', text }], source })
}

function schemaSource(form: 'instructions' | 'notice'): MessageSource {
  if (form === 'instructions') return { kind: 'plugin', plugin: 'answer-schema', form }
  return { kind: 'plugin', plugin: 'answer-schema', form, summary: 'The answer did not fit the schema' }
}

/** A choice that cannot be kept is no reason to fail a run that went well. */
async function keepModel({ provider, model }: ModelChoice, { last, io }: Job): Promise<void> {
  if (provider === 'demo' || (last?.provider === provider && last.model === model)) return
  const line = await writeLastModel(io.home, { provider, model }).then(
    () => `${provider}/${model} is the default from now on`,
    (error: unknown) => `the model could not be kept as the default: ${(error as Error).message}`,
  )
  io.err.line(inert(line))
}
