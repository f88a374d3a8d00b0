import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { inboxFold } from '../../src/core/agent/index.ts'
import { toolNotStarted, toolOutcomeUnknown } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import { sessionProjections } from '../../src/plugins/session-projections/index.ts'
import { rebuildRequest } from '../../src/plugins/time-travel/index.ts'
import { createHarness, examine, randomOf, reply, startMockProvider } from '../../src/testing/index.ts'
import type { Finding, MockProvider } from '../../src/testing/index.ts'
import { startProgram } from '../../src/testing/contracts/store-program.ts'
import { readJournal } from './journal.ts'
import type { ReadJournal } from './journal.ts'
import { killed, Victim } from './kill.ts'
import { fingerprintOf } from './media.ts'
import type { MediumName } from './media.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'

const id = SessionId('s1')

export interface FailpointOptions {
  readonly medium: MediumName
  /** Takes some of the points that a program passes. */
  readonly choose: (points: readonly string[]) => readonly string[]
}

/** Programs that run the real loop over the wire are killed at every point that they pass. */
export async function killAtPoints({ medium, choose }: FailpointOptions): Promise<Row> {
  const tally = new Tally(`kill -9 at each point of two turns (${medium})`)
  const points = choose(await passedPoints(medium))
  await inPairs(points, async point => tally.add(`killed at "${point}"`, await killAt(medium, point)))
  return tally.row
}

/** Two at a time: most of it is waiting. */
export async function inPairs<T>(values: readonly T[], job: (value: T) => Promise<void>): Promise<void> {
  const waiting = [...values]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await job(next)
  }
  await Promise.all([lane(), lane()])
}

function provide(): Promise<MockProvider> {
  const call = (callId: string) => ({ name: 'work', arguments: {}, id: callId })
  return startMockProvider({
    script: [
      reply.toolCalls([call('c1'), call('c2')], { text: 'I shall work twice' }),
      reply.toolCalls([call('c3')]),
      reply.text('all of it is done now, as you can see'),
      reply.text('and it goes on'),
    ],
    rules: 'off',
  })
}

async function passedPoints(medium: MediumName): Promise<readonly string[]> {
  const victim = new Victim(medium)
  const provider = await provide()
  try {
    const points = join(victim.home, 'points')
    await victim.run({ role: 'turns', url: provider.url, points })
    return [...readFileSync(points, 'utf8').split('\n'), 'end']
  } finally {
    await victim.remove()
    await provider.close()
  }
}

async function killAt(medium: MediumName, point: string): Promise<readonly Finding[]> {
  const victim = new Victim(medium)
  const provider = await provide()
  try {
    const { child } = await victim.run({ role: 'turns', url: provider.url, point })
    await killed(child)
    const journal = readJournal(victim.journal)
    const findings = await examineVictim(victim)
    return [...findings, ...(await checkMeaning(victim, journal, provider))]
  } finally {
    await victim.remove()
    await provider.close()
  }
}

/** What the log says of the work that was cut off, and of the bytes that went over the wire. */
async function checkMeaning(
  victim: Victim,
  journal: ReadJournal,
  provider: MockProvider,
): Promise<readonly Finding[]> {
  const program = await startProgram({ open: () => victim.open() })
  const encoder = await createHarness()
  await encoder.ctx.plugin(llmOpenAIChat, { env: provider.env })
  try {
    if ((await program.ctx.sessionPersistence.list()).length === 0) return []
    const session = await program.ctx.sessionPersistence.view(id)
    const texts = [
      ...(await checkProjections(program.ctx, victim, session)),
      ...checkCalls(session, journal.effects),
      ...checkPrompts(session),
      ...(await checkBytes(encoder.ctx, session, journal, provider)),
    ]
    return texts.map(text => ({ rule: 'witnessed', id, text, lost: 1 }))
  } finally {
    await encoder.ctx.dispose()
    await program.stop()
  }
}

/** What was kept of the log's values, and brought up to date, equals a fresh fold of the log. */
async function checkProjections(ctx: Context, victim: Victim, session: Session): Promise<readonly string[]> {
  await ctx.plugin(sessionProjections, { folder: join(victim.home, 'projections') })
  const kept = await ctx.sessionProjectionCache.coldSnapshot({ header: session.header })
  const fresh = ctx.sessionProjections.snapshot(session)
  return JSON.stringify(kept) === JSON.stringify(fresh)
    ? []
    : ['the projections that were kept are not those of the log']
}

function checkCalls({ events }: Session, effects: readonly string[]): readonly string[] {
  const calls = events.flatMap(event =>
    event.type === 'assistant/message' ? event.data.message.content : [],
  )
  return calls.flatMap(block => {
    if (block.type !== 'tool-call') return []
    const results = events.filter(event => event.type === 'tool/result' && resultOf(event) === block.id)
    const [result] = results as readonly SessionEvent<'tool/result'>[]
    if (results.length !== 1 || result === undefined)
      return [`call ${block.id} has ${results.length} results`]
    const code = result.data.error?.code
    const started = events.find(event => event.type === 'tool/start' && event.data.callId === block.id)
    if (code === undefined)
      return effects.includes(block.id) ? [] : [`call ${block.id} has a result and never ran`]
    if (code === toolNotStarted.error.code)
      return started === undefined && !effects.includes(block.id)
        ? []
        : [`call ${block.id} ran, and is told as not begun`]
    if (code !== toolOutcomeUnknown.error.code) return [`call ${block.id} ended with ${code}`]
    const cites = started !== undefined && (result.sourceEventSeqs ?? []).includes(started.seq)
    return cites ? [] : [`the unknown outcome of call ${block.id} does not name its start`]
  })
}

function resultOf({ data }: SessionEvent<'tool/result'>): string | undefined {
  return data.message.source.kind === 'tool' ? data.message.source.callId : undefined
}

/** A prompt that was stored is in the queue or in the history, once. */
function checkPrompts(session: Session): readonly string[] {
  const { events } = session
  const queue = session.fold(inboxFold)
  const waiting = [...queue['next-turn'], ...queue['next-step']].map(message => message.id)
  const entered = events.flatMap(event => (event.type === 'user/message' ? [event.data.id] : []))
  const asked = events.flatMap(event => (event.type === 'agent/inbox/spliced' ? event.data.inserted : []))
  return [...new Set(asked.map(message => message.id))].flatMap(prompt => {
    const places = [...waiting, ...entered].filter(each => each === prompt).length
    return places === 1 ? [] : [`prompt ${prompt} is in ${places} places`]
  })
}

/** Each request that arrived is rebuilt from the log, byte for byte. */
async function checkBytes(
  ctx: Context,
  session: Session,
  { requests }: ReadJournal,
  provider: MockProvider,
): Promise<readonly string[]> {
  const texts: string[] = []
  for (const [index, { text }] of provider.requests.entries()) {
    const length = requests[index]
    const rebuilt = length === undefined ? undefined : rebuildRequest(session, length)
    const body = rebuilt === undefined ? undefined : await ctx.llm.encode(rebuilt.request)
    if (body === undefined || Buffer.from(body).toString() !== text)
      texts.push(`request ${index + 1} arrived, and the log gives another`)
  }
  return texts
}

/** A torn log is resumed by a program that is killed at one of its calls; each call in its turn. */
export async function killWhileMending(calls: readonly number[]): Promise<Row> {
  const tally = new Tally('kill -9 at each call of mending a torn tail')
  await inPairs(calls, async call => tally.add(`killed at call ${call}`, await killMending(call)))
  return tally.row
}

async function killMending(call: number): Promise<readonly Finding[]> {
  const victim = new Victim('jsonl')
  try {
    await killed((await victim.run({ role: 'append' })).child)
    const [log] = globSync(join(victim.home, 'sessions/*/*/log.jsonl.zst'))
    appendFileSync(
      log ?? '',
      call % 2 === 0 ? Buffer.alloc(300) : readFileSync(log ?? '').subarray(-200, -20),
    )
    const { child } = await victim.run({ role: 'resume', point: `call ${call}` })
    await killed(child)
    return await examineVictim(victim)
  } finally {
    await victim.remove()
  }
}

export function examineVictim(victim: Victim): Promise<readonly Finding[]> {
  const { ledger } = readJournal(victim.journal)
  const place = { open: () => victim.watched() }
  const fingerprint = (): string => fingerprintOf(join(victim.home, 'sessions'))
  return examine({ place, ...(victim.medium === 'jsonl' ? { fingerprint } : {}) }, ledger.current)
}

export interface AppendKillOptions {
  readonly medium: MediumName
  readonly seed: string
  readonly sessions: number
  /** How often each is killed and resumed. */
  readonly lives: number
}

/** Programs that append without end are killed at any time, each going on where the last one was killed. */
export async function killWhileAppending({ medium, seed, sessions, lives }: AppendKillOptions): Promise<Row> {
  const tally = new Tally(`kill -9 while appending (${medium})`)
  const random = randomOf(`${seed} kill ${medium}`)
  await inPairs([...Array(sessions).keys()], async session => {
    const victim = new Victim(medium)
    try {
      for (let life = 1; life <= lives; life += 1) {
        const { child } = await victim.run({ role: 'append' })
        await victim.hasWritten(random.below(40), child)
        await killed(child)
        if (child.signalCode !== 'SIGKILL')
          throw new Error(`a program ended by itself, with ${child.exitCode}`)
        tally.add(`life ${life} of session ${session}`, await examineVictim(victim))
      }
    } finally {
      await victim.remove()
    }
  })
  return tally.row
}
