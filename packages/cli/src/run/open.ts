import type { AgentHandle } from '@dsh/harness/agent'
import { providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import type { SessionId } from '@dsh/protocol'
import { reportOf } from '../report-error.ts'
import { findSession, newestSession } from '../sessions.ts'
import { usageError } from '../errors.ts'
import { unbroken } from '../text.ts'
import { workFolder } from './folder.ts'
import { chooseModel } from './model.ts'
import type { ModelChoice, ModelRoute } from './model.ts'
import { newSessionId } from './session-id.ts'
import type { Job } from './job.ts'

/** The session a run works in. */
export interface Target {
  readonly id: SessionId
  readonly folder: string
  readonly isNew: boolean
}

/** Throws a usage error where the options name no session, or one whose folder is not there. */
export async function targetOf({ ctx, options, io }: Job): Promise<Target> {
  const { resume, directory } = options
  if (resume === undefined)
    return { id: newSessionId(), folder: await workFolder(io.cwd, directory), isNew: true }
  if (resume === 'newest') {
    const folder = await workFolder(io.cwd, directory)
    const tell = (text: string): void => io.err.line(`note: ${unbroken(text)}`)
    const { id } = await newestSession(ctx.sessionPersistence, folder, tell)
    return { id, folder, isNew: false }
  }
  const row = await findSession(ctx.sessionPersistence, resume.id)
  const own = 'header' in row ? row.header.cwd : undefined
  const folder = await workFolder(io.cwd, directory ?? own).catch((error: unknown) => {
    if (directory !== undefined) throw error
    throw usageError(
      'SESSION_FOLDER_GONE',
      `session ${row.id}: ${reportOf(error).message}`,
      `mkdir -p ${own}`,
    )
  })
  if (own !== undefined && folder !== own && directory !== undefined)
    throw usageError(
      'FOLDER_CONFLICT',
      `session ${row.id} belongs to "${own}", not to "${folder}"`,
      `dsh run -r ${row.id} …`,
    )
  return { id: row.id, folder, isNew: false }
}

/** The agent of `target` and the model it will ask. A missing key is told before anything is stored. */
export async function openSession(
  target: Target,
  job: Job,
): Promise<{ readonly handle: AgentHandle; readonly choice: ModelChoice }> {
  const { ctx, options, last, stop, io } = job
  const { id, folder, isNew } = target
  const { signal } = stop
  const choose = (session?: ModelRoute): ModelChoice =>
    chooseModel({ asked: options.model, session, last, env: io.env, providers: providerCatalog })
  if (isNew || options.model !== undefined) {
    const choice = choose()
    const agentOptions = { provider: choice.provider, model: choice.model }
    const handle = isNew
      ? await ctx.agents.create({ sessionId: id, meta: { cwd: folder }, agentOptions, signal })
      : await ctx.agents.resume({ resumeSessionId: id, agentOptions, signal })
    return { handle, choice }
  }
  const handle = await ctx.agents.resume({ resumeSessionId: id, signal })
  const choice = choose(handle.agent.session.requestHeader()?.config)
  const { provider, model } = choice
  // A session that never asked a model has no route to keep.
  ctx.on('agent/request', async (_, next) => ({ ...(await next()), provider, model }))
  return { handle, choice }
}
