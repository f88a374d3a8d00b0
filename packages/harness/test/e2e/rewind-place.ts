import { lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Context } from '@dsh/harness/kernel'
import type { Session } from '@dsh/harness/session'
import { text, toolCall } from '@dsh/harness/plugins/llm-scripted'
import { rewind } from '@dsh/harness/plugins/rewind'
import type { RewindConfig, RewindNotice } from '@dsh/harness/plugins/rewind'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { createHarness, say } from '@dsh/harness/testing'
import { defineTool } from '@dsh/harness/tools'

export type Act = () => unknown

/** What a person does around the steps of a turn. */
export interface Meanwhile {
  /** While request `index` is out: not answered yet, or in the middle of its answer. */
  asked?(index: number): unknown
  answering?(index: number): unknown
}

/** Runs what was given at the end, the last first. */
export interface Ends {
  after(end: () => Promise<void>): void
}

export interface PlaceOptions extends Partial<RewindConfig> {
  /** An existing place to go on in, as another program. */
  readonly base?: string
  readonly sessionId?: string
}

/** An agent in a workspace of its own, whose tool `act` does the next thing it is given. */
export async function openPlace(t: Ends, options: PlaceOptions = {}) {
  const { base: given, sessionId = 's1', ...config } = options
  const base = given ?? (await realpath(await mkdtemp(join(tmpdir(), 'rewind-'))))
  const [home, workspace] = [join(base, 'home'), join(base, 'work')]
  await mkdir(workspace, { recursive: true })
  const { ctx, adapter } = await createHarness()
  t.after(async () => {
    await ctx.dispose()
    if (given === undefined) await rm(base, { recursive: true, force: true })
  })
  const notices: RewindNotice[] = []
  ctx.on('rewind/notice', notice => void notices.push(notice))
  await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
  await ctx.plugin(rewind, { home, ...config })
  const acts: Act[] = []
  ctx.tools.register(
    defineTool({
      name: 'act',
      description: 'acts',
      parameters: {},
      execute: async () => {
        await acts.shift()?.()
        return 'done'
      },
    }),
  )
  const agentOptions = { provider: 'mock', model: 'mock' }
  const openAgent = (id: string) =>
    ctx.agents.create({ sessionId: SessionId(id), meta: { cwd: workspace }, agentOptions })
  const resumeAgent = (id: string) => ctx.agents.resume({ resumeSessionId: SessionId(id), agentOptions })
  const { agent } = given === undefined ? await openAgent(sessionId) : await resumeAgent(sessionId)
  /** One turn in which each act is a step, and things happen around them. */
  const turnAmid = async (around: Meanwhile, ...given: readonly Act[]): Promise<void> => {
    acts.push(...given)
    const answers = [...given.map(() => toolCall('act', {})), text('done')]
    for (const [index, chunks] of answers.entries())
      adapter.push(answerAmid(ctx, agent.session, { index, chunks, around }))
    agent.followup(say('go'))
    await agent.whenIdle()
  }
  /** One turn in which each act is a step. */
  const turn = async (...given: readonly Act[]): Promise<void> => await turnOf(agent, ...given)
  const turnOf = async (who: typeof agent, ...given: readonly Act[]): Promise<void> => {
    acts.push(...given)
    for (const _ of given) adapter.push(toolCall('act', {}))
    adapter.push(text('done'))
    who.followup(say('go'))
    await who.whenIdle()
  }
  const at = (path: string): string => join(workspace, path)
  return {
    ctx,
    adapter,
    base,
    home,
    workspace,
    agent,
    turn,
    turnOf,
    turnAmid,
    acts,
    at,
    notices,
    openAgent,
    resumeAgent,
  }
}

interface Answer {
  readonly index: number
  readonly chunks: ReturnType<typeof text>
  readonly around: Meanwhile
}

/** Its first chunk is out before files change in its middle, and so is the point of the turn's beginning. */
function answerAmid(ctx: Context, session: Session, { index, chunks, around }: Answer) {
  return async function* () {
    const [first, ...rest] = chunks
    if (index > 0) await around.asked?.(index)
    if (first !== undefined) yield first
    const { turn } = session.last('turn/start')?.data ?? {}
    if (index === 0) await pointTaken(ctx, session, ({ data }) => data.turn === turn)
    await around.answering?.(index)
    yield* rest
  }
}

/** Resolves when the log has such a point. */
export async function pointTaken(
  ctx: Context,
  session: Session,
  isIt: (point: SessionEvent<'restore/point'>) => boolean,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (): void => {
    if (pointsOf(session).some(isIt)) resolve()
  }
  const stop = ctx.on('session/event', look)
  look()
  await promise
  stop()
}

export type Place = Awaited<ReturnType<typeof openPlace>>

/** Everything below a folder, by path: kind, permission bits and content. What a link leads to is no part of it. */
export function treeOf(folder: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(Buffer.from(`${folder}/${below}`, 'latin1'), 'latin1')) {
    const entry = `${below}${name}`
    const path = Buffer.from(`${folder}/${entry}`, 'latin1')
    const stats = lstatSync(path)
    const mode = (stats.mode & 0o7777).toString(8)
    if (stats.isDirectory()) Object.assign(found, { [entry]: 'folder' }, treeOf(folder, `${entry}/`))
    else if (stats.isSymbolicLink()) found[entry] = `link ${readlinkSync(path, 'latin1')}`
    else found[entry] = stats.isFile() ? `${mode} ${readFileSync(path, 'latin1')}` : 'special'
  }
  return found
}

export function pointsOf(session: Session): readonly SessionEvent<'restore/point'>[] {
  return session.events.flatMap(event => (event.type === 'restore/point' ? [event] : []))
}

/** The seq of the event of a type, counted from 0. */
export function seqOf(session: Session, type: SessionEvent['type'], index = 0): number {
  return session.events.filter(event => event.type === type)[index]?.seq ?? -1
}
