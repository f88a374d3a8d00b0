import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import type { Session } from '../../core/session/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { fail, text } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { sessionProjections } from '../session-projections/index.ts'
import { title, titleFold } from './index.ts'
import type { TitleProvider, TitleRequest } from './index.ts'

async function setup(script: readonly ScriptEntry[] = [], config = {}) {
  const harness = await createHarness(script)
  const { ctx } = harness
  await ctx.plugin(sessionProjections)
  const plugin = ctx.plugin(title, config)
  await plugin
  return { ...harness, plugin, titles: ctx.sessionTitle }
}

const typesOf = (session: Session): string[] =>
  session.events.map(({ type }) => type).filter(type => type !== 'assistant/chunk')
const titlesIn = (session: Session): unknown[] =>
  session.events.flatMap(({ type, data }) => (type === 'session/title' ? [data] : []))

/** A provider that is asked by hand, and answers when told to. */
function byHand(automatic: TitleProvider['automatic']) {
  const requests: (TitleRequest & { answer(title: string): void; fail(error: Error): void })[] = []
  const provider: TitleProvider = {
    id: 'hand',
    automatic,
    generate(request) {
      const { promise, resolve, reject } = Promise.withResolvers<{ title: string; messageSeqs: number[] }>()
      const messageSeqs = request.messages.map(({ seq }) => seq)
      requests.push({ ...request, answer: given => resolve({ title: given, messageSeqs }), fail: reject })
      return promise
    },
  }
  return { requests, provider }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

/** A turn with `prompt`, to its end. */
async function ask(worker: Agent, prompt: string): Promise<void> {
  worker.followup(say(prompt))
  await worker.whenIdle()
}

test('the first prompt gives the title, after the model has answered', async () => {
  const { agent, titles, ctx } = await setup([text('done'), text('done again')])
  const worker = agent()
  const { session } = worker
  await ask(worker, 'Fix the login test, and then run all the others')
  const found = titles.get(session)
  assert.equal(found?.title, 'Fix the login test, and')
  assert.deepEqual(found?.source, { kind: 'fallback' })
  assert.equal(session.at(found?.messageSeqs[0] ?? -1)?.type, 'user/message')
  assert.equal(session.at(found?.eventSeq ?? -1)?.time, found?.updatedAt)
  const types = typesOf(session)
  assert.equal(types.indexOf('session/title'), types.indexOf('assistant/message') + 1)
  assert.equal(ctx.sessionProjections.stateOf(session, 'title')?.title, found?.title)
  await ask(worker, 'Something else')
  assert.equal(titlesIn(session).length, 1)
})

test('a turn without an answer still has a title, and one without words has none', async () => {
  const { agent, titles } = await setup([fail('AUTH'), text('hm'), text('yes')])
  const failed = agent()
  await ask(failed, 'Look at this')
  assert.equal(titles.get(failed.session)?.title, 'Look at this')
  const wordless = agent()
  await ask(wordless, ' \u200b')
  assert.equal(titles.get(wordless.session), undefined)
  await ask(wordless, 'Now with words')
  assert.equal(titles.get(wordless.session)?.title, 'Now with words')
})

test('what plugins say gives no title', async () => {
  const { agent, titles } = await setup([text('ok')])
  const worker = agent()
  const context = createUserMessage({
    content: [{ type: 'text', text: 'the time is noon' }],
    source: { kind: 'plugin', plugin: 'clock' },
  })
  worker.followup(context)
  await worker.whenIdle()
  assert.equal(titles.get(worker.session), undefined)
})

test('a person names a session, and nothing renames it but a request to do so', async () => {
  const { ctx, agent, titles } = await setup([text('a'), text('b')])
  const { requests, provider } = byHand('all-prompts')
  ctx.sessionTitle.register(provider)
  const worker = agent()
  await ask(worker, 'Fix it')
  assert.equal(requests.length, 1)
  titles.rename(worker.session, '  My\u001b[1m own\n name ')
  requests[0]?.answer('Too late')
  await settled()
  await ask(worker, 'Fix that too')
  assert.equal(requests.length, 1)
  assert.equal(titles.get(worker.session)?.title, 'My own name')
  assert.equal(requests[0]?.signal.aborted, true)
  const refreshed = titles.refresh(worker.session)
  requests[1]?.answer('Two repairs')
  assert.equal((await refreshed)?.title, 'Two repairs')
  assert.deepEqual(
    titlesIn(worker.session).map(data => (data as { source: { kind: string } }).source.kind),
    ['fallback', 'user', 'provider'],
  )
})

test('a name without letters is refused and leaves no trace', async () => {
  const { ctx, titles } = await setup()
  const session = ctx.sessions.create(SessionId('s'))
  assert.throws(() => titles.rename(session, ' \u001b[0m\n'), {
    code: 'INVALID_TITLE',
    message: 'the title " \\u001b[0m\\n" has no letters to show',
  })
  assert.equal(session.length, 0)
})

test('a session that is not live, or read-only, takes no title', async () => {
  const { ctx, titles } = await setup()
  const session = ctx.sessions.prepare(SessionId('s'))
  assert.throws(() => titles.rename(session, 'name'), {
    code: 'SESSION_NOT_WRITABLE',
    message: 'session "s" takes no title: it is not live here',
  })
  const seen = ctx.sessions.prepare(SessionId('t'), { readOnly: 'it is looked at' })
  await assert.rejects(titles.refresh(seen), { code: 'SESSION_NOT_WRITABLE', message: /it is looked at/ })
})

test('a provider for first prompts is asked once, and never for a fork', async () => {
  const { ctx, agent, titles } = await setup([text('a'), text('b'), text('c')])
  const { requests, provider } = byHand('first-prompt')
  titles.register(provider)
  const worker = agent()
  await ask(worker, 'First')
  requests[0]?.answer('Found')
  await settled()
  await ask(worker, 'Second')
  assert.equal(requests.length, 1)
  assert.deepEqual(
    requests[0]?.messages.map(message => message.text),
    ['First'],
  )
  assert.deepEqual(requests[0]?.route, { provider: 'mock', model: 'mock' })
  assert.equal(titles.get(worker.session)?.title, 'Found')
  const child = ctx.sessions.fork(worker.session)
  assert.equal(titles.get(child)?.title, 'Found')
  child.append('turn/start', { turn: 3 })
  child.append('user/message', say('Third'), { surfaceOp: 'append' })
  child.append('turn/end', { turn: 3, reason: { kind: 'completed' } })
  assert.equal(requests.length, 1)
})

test('each prompt asks anew, and what an older question brings is dropped', async () => {
  const { agent, titles } = await setup([text('a'), text('b')])
  const { requests, provider } = byHand('all-prompts')
  titles.register(provider)
  const worker = agent()
  await ask(worker, 'First')
  await ask(worker, 'Second')
  assert.deepEqual(
    requests.map(({ messages, signal }) => [messages.length, signal.aborted]),
    [
      [1, true],
      [2, false],
    ],
  )
  requests[1]?.answer('Both')
  await settled()
  requests[0]?.answer('Stale')
  await settled()
  assert.equal(titles.get(worker.session)?.title, 'Both')
})

test('a session can be forked at a title between two turns', async () => {
  const { ctx, agent, titles } = await setup([text('a'), text('b')])
  const worker = agent()
  await ask(worker, 'First')
  const { eventSeq } = titles.rename(worker.session, 'Mine')
  await ask(worker, 'Second')
  titles.rename(worker.session, 'Later')
  const child = ctx.sessions.fork(worker.session, eventSeq)
  assert.equal(titles.get(child)?.title, 'Mine')
  assert.equal(child.header.seedLength, eventSeq + 1)
})

test('the newest of two requests for a title wins', async () => {
  const { agent, titles } = await setup([text('a')])
  const worker = agent()
  await ask(worker, 'First')
  const { requests, provider } = byHand('first-prompt')
  titles.register(provider)
  const older = titles.refresh(worker.session)
  const newer = titles.refresh(worker.session)
  requests[0]?.answer('Older')
  requests[1]?.answer('Newer')
  await assert.rejects(older, { code: 'TITLE_SUPERSEDED' })
  assert.equal((await newer)?.title, 'Newer')
})

test('a request for a title that is cancelled, or fails, keeps the first title', async () => {
  const { ctx, titles } = await setup()
  const { requests, provider } = byHand('first-prompt')
  titles.register(provider)
  const session = ctx.sessions.create(SessionId('s'))
  assert.equal(await titles.refresh(session), undefined)
  session.append('user/message', say('Look'), { surfaceOp: 'append' })
  const stop = new AbortController()
  const cancelled = titles.refresh(session, stop.signal)
  stop.abort(new Error('enough'))
  await assert.rejects(cancelled, /enough/)
  const failing = titles.refresh(session)
  requests[1]?.fail(new Error('no idea'))
  await assert.rejects(failing, /no idea/)
  assert.equal(titles.get(session)?.title, 'Look')
  assert.equal(titlesIn(session).length, 1)
})

test('a provider that gives no title of what it was asked about is refused', async () => {
  const { ctx, titles } = await setup()
  const given: unknown[] = []
  titles.register({
    id: 'odd',
    automatic: 'first-prompt',
    generate: () => Promise.resolve(given.shift() as never),
  })
  const session = ctx.sessions.create(SessionId('s'))
  session.append('user/message', say('one'), { surfaceOp: 'append' })
  session.append('user/message', say('two'), { surfaceOp: 'append' })
  const cases: [answer: unknown, message: string][] = [
    [undefined, 'no title'],
    [{ title: '', messageSeqs: [0] }, 'no title'],
    [{ title: 'x', messageSeqs: [] }, 'a title of no messages'],
    [{ title: 'x', messageSeqs: [7] }, 'a title of messages it was not asked about: 7'],
    [{ title: 'x', messageSeqs: [1, 0] }, 'messages out of order: 1, 0'],
    [{ title: '\u200b', messageSeqs: [0] }, 'no title'],
  ]
  for (const [answer, problem] of cases) {
    given.push(answer)
    const message = `title provider "odd" gave ${problem}`
    await assert.rejects(titles.refresh(session), { code: 'INVALID_TITLE', message })
  }
})

test('there is one provider; when it goes, what it was doing is cut off and waited for', async () => {
  const { ctx, agent, titles } = await setup([text('a')])
  const { requests, provider } = byHand('first-prompt')
  const dispose = titles.register(provider)
  assert.throws(() => titles.register(provider), { code: 'DUPLICATE_PROVIDER' })
  const worker = agent()
  await ask(worker, 'First')
  await dispose()
  requests[0]?.answer('Late')
  await settled()
  assert.equal(ctx.sessionTitle.get(worker.session)?.title, 'First')
  titles.register(provider)
})

test('a title must say where it comes from, and cite messages unless a person gave it', async () => {
  const { ctx } = await setup()
  const session = ctx.sessions.create(SessionId('s'))
  const append = session.append.bind(session) as (type: string, data: unknown) => void
  const cases: [data: unknown, problem: RegExp][] = [
    [{ title: '', messageSeqs: [], source: { kind: 'user' } }, /title is ""/],
    [{ title: 'x', messageSeqs: [0], source: { kind: 'user' } }, /a person gave cites no messages/],
    [{ title: 'x', messageSeqs: [], source: { kind: 'fallback' } }, /the fallback cites at least one/],
    [{ title: 'x', messageSeqs: [2, 1], source: { kind: 'fallback' } }, /not in order/],
    [{ title: 'x', messageSeqs: [1], source: { kind: 'provider' } }, /the provider has no name/],
    [{ title: 'x', messageSeqs: [1], source: { kind: 'star' } }, /source.kind is "star"/],
  ]
  for (const [data, problem] of cases) assert.throws(() => append('session/title', data), problem)
  assert.equal(session.length, 0)
})

test('a log keeps its titles where the plugin is not there', async () => {
  const { ctx, agent, plugin } = await setup([text('a')])
  const worker = agent()
  await ask(worker, 'First')
  await plugin.dispose()
  assert.equal(ctx.get('sessionTitle'), undefined)
  const again = ctx.sessions.prepare(SessionId('again'), {
    seed: structuredClone(worker.session.events) as SessionEvent[],
    seedSource: 'persistence',
  })
  assert.equal(again.readOnly, undefined)
  assert.equal(again.fold(titleFold)?.title, 'First')
})
