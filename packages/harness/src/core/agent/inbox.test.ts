import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MessageId, SessionId } from '@dsh/protocol'
import type { InboxTarget, SessionEvent, UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../llm/index.ts'
import { Session } from '../session/index.ts'
import { Inbox, inboxFold } from './inbox.ts'

function setup(session = Session.create(SessionId('s'))) {
  const heard: string[] = []
  const inbox = new Inbox(session, {
    inserted: message => heard.push(`inserted ${wordsOf(message)}`),
    discarded: message => heard.push(`discarded ${wordsOf(message)}`),
    claimed: (message, turn) => heard.push(`claimed ${wordsOf(message)} in ${turn}`),
  })
  const pending = (): Record<InboxTarget, string[]> => ({
    'next-step': inbox.nextStep.map(wordsOf),
    'next-turn': inbox.nextTurn.map(wordsOf),
  })
  return { session, inbox, heard, pending, logged: () => splicesOf(session) }
}

function say(text: string): UserMessage {
  return createUserMessage({ content: [{ type: 'text', text }], source: { kind: 'user' } })
}

function wordsOf(message: UserMessage): string {
  const [block] = message.content
  return block?.type === 'text' ? block.text : ''
}

/** The splices of a log, with words in the place of messages. */
function splicesOf(session: Session): unknown[] {
  const isSplice = (event: SessionEvent): event is SessionEvent<'agent/inbox/spliced'> =>
    event.type === 'agent/inbox/spliced'
  return session.events
    .filter(isSplice)
    .map(({ data }) => ({ ...data, inserted: data.inserted.map(wordsOf) }))
}

test('each change is one event in plain splice coordinates', () => {
  const { inbox, logged, pending } = setup()
  inbox.append('next-turn', say('a'), say('b'))
  inbox.prepend('next-turn', say('c'))
  inbox.splice('next-turn', -1, Infinity, [say('d')])
  inbox.splice('next-turn', Number.NaN, 1.9, [])
  inbox.append('next-step', say('e'))
  assert.deepEqual(logged(), [
    { target: 'next-turn', start: 0, inserted: ['a', 'b'] },
    { target: 'next-turn', start: 0, inserted: ['c'] },
    { target: 'next-turn', start: 2, removedCount: 1, inserted: ['d'], outcome: 'canceled' },
    { target: 'next-turn', start: 0, removedCount: 1, inserted: [], outcome: 'canceled' },
    { target: 'next-step', start: 0, inserted: ['e'] },
  ])
  assert.deepEqual(pending(), { 'next-step': ['e'], 'next-turn': ['a', 'd'] })
})

test('a splice that changes nothing leaves no trace', () => {
  const { session, inbox, heard } = setup()
  inbox.splice('next-turn', 5, 3, [])
  inbox.splice('next-step', -Infinity, -2, [])
  inbox.clear()
  assert.equal(session.length, 0)
  assert.deepEqual(heard, [])
})

test('a replaced or removed message is discarded, one that is not pending any more is not', () => {
  const { inbox, heard, logged, pending } = setup()
  const [first, second] = [say('first'), say('second')]
  inbox.append('next-turn', first)
  inbox.append('next-step', second)
  assert.equal(inbox.replace(first.id, say('better')), true)
  assert.equal(inbox.replace(first.id, say('too late')), false)
  assert.equal(inbox.remove(second.id), true)
  assert.equal(inbox.remove(second.id), false)
  assert.deepEqual(pending(), { 'next-step': [], 'next-turn': ['better'] })
  assert.deepEqual(heard.slice(2), ['discarded first', 'inserted better', 'discarded second'])
  assert.deepEqual(logged().at(-2), {
    target: 'next-turn',
    start: 0,
    removedCount: 1,
    inserted: ['better'],
    outcome: 'canceled',
  })
})

test('clearing empties the next step and then the next turn, and tells of each message', () => {
  const { inbox, heard, logged } = setup()
  inbox.append('next-turn', say('a'), say('b'))
  inbox.append('next-step', say('c'))
  inbox.clear()
  assert.deepEqual(heard.slice(3), ['discarded c', 'discarded a', 'discarded b'])
  assert.deepEqual(logged().slice(2), [
    { target: 'next-step', start: 0, removedCount: 1, inserted: [], outcome: 'canceled' },
    { target: 'next-turn', start: 0, removedCount: 2, inserted: [], outcome: 'canceled' },
  ])
  assert.equal(inbox.hasPending, false)
})

test('a claim takes all of the next step and one prompt, and discards nothing', () => {
  const { inbox, heard, logged, pending } = setup()
  inbox.append('next-turn', say('a'), say('b'))
  inbox.append('next-step', say('c'), say('d'))
  assert.deepEqual(inbox.claim('next-turn', 7).map(wordsOf), ['c', 'd', 'a'])
  assert.deepEqual(heard.slice(4), ['claimed c in 7', 'claimed d in 7', 'claimed a in 7'])
  assert.deepEqual(logged().slice(2), [
    { target: 'next-step', start: 0, removedCount: 2, inserted: [] },
    { target: 'next-turn', start: 0, removedCount: 1, inserted: [] },
  ])
  assert.deepEqual(pending(), { 'next-step': [], 'next-turn': ['b'] })
  assert.deepEqual(inbox.claim('next-step', 7), [])
})

test('a message stands in the lists once', () => {
  const { session, inbox, heard, pending } = setup()
  const message = say('a')
  inbox.append('next-turn', message)
  const { length } = session
  for (const target of ['next-turn', 'next-step'] as const) {
    assert.throws(() => inbox.append(target, say('b'), message), { code: 'DUPLICATE_MESSAGE' })
  }
  const twice = say('c')
  assert.throws(() => inbox.append('next-step', twice, twice), { code: 'DUPLICATE_MESSAGE' })
  assert.equal(session.length, length)
  assert.deepEqual(heard, ['inserted a'])
  inbox.append('next-step', twice)
  assert.deepEqual(pending(), { 'next-step': ['c'], 'next-turn': ['a'] })
  inbox.remove(message.id)
  inbox.append('next-turn', message)
  assert.deepEqual(pending()['next-turn'], ['a'])
})

test('what could not be a user message later is refused now', () => {
  const { session, inbox } = setup()
  const good = say('a')
  for (const bad of [
    { ...good, id: MessageId('') },
    { ...good, role: 'assistant' },
    { ...good, content: 'text' },
    { ...good, source: {} },
  ]) {
    assert.throws(() => inbox.append('next-turn', bad as UserMessage), TypeError)
  }
  assert.equal(session.length, 0)
})

test('lists stay as they were when the log refuses a change', () => {
  const { inbox, heard, pending } = setup()
  const message = say('a')
  inbox.append('next-turn', message)
  const lossy = { ...say('b'), content: [{ type: 'text', text: Number.NaN }] } as unknown as UserMessage
  assert.throws(() => inbox.splice('next-turn', 0, 1, [lossy]), TypeError)
  assert.deepEqual(pending()['next-turn'], ['a'])
  assert.deepEqual(heard, ['inserted a'])
  assert.throws(() => inbox.append('next-step', message), { code: 'DUPLICATE_MESSAGE' })
})

test('a fork starts empty and a resumed session has what was left', () => {
  const { session, inbox } = setup()
  inbox.append('next-turn', say('a'))
  inbox.append('next-step', say('b'))
  const seed = session.events
  const resumed = setup(Session.create(SessionId('s'), seed, { ...session.header }))
  assert.deepEqual(resumed.pending(), { 'next-step': ['b'], 'next-turn': ['a'] })
  const fork = { ...session.header, id: SessionId('fork'), seedLength: seed.length }
  const forked = setup(Session.create(SessionId('fork'), seed, fork))
  assert.deepEqual(forked.pending(), { 'next-step': [], 'next-turn': [] })
  assert.equal(forked.inbox.hasPending, false)
})

test('a list that the log does not fit is empty from there, with the first reason, and works on', () => {
  const { session, inbox } = setup()
  const [a, b] = [say('a'), say('b')]
  inbox.append('next-step', say('c'))
  session.append('agent/inbox/spliced', { target: 'next-turn', start: 1, inserted: [a] })
  session.append('agent/inbox/spliced', { target: 'next-turn', start: 0, removedCount: 1, inserted: [] })
  const resumed = setup(session)
  assert.deepEqual(resumed.pending(), { 'next-step': ['c'], 'next-turn': [] })
  assert.deepEqual(session.fold(inboxFold).misfit, {
    seq: 1,
    message: 'event 1 changes "next-turn" up to message 1, and 0 wait there',
  })
  resumed.inbox.append('next-turn', b)
  assert.deepEqual(resumed.pending(), { 'next-step': ['c'], 'next-turn': ['b'] })
  assert.deepEqual(resumed.inbox.claim('next-turn', 1).map(wordsOf), ['c', 'b'])
})

test('what a log has waiting twice, or lets be read while it waits, is not read again', () => {
  const twice = setup()
  const message = say('a')
  twice.inbox.append('next-step', message)
  twice.session.append('agent/inbox/spliced', { target: 'next-turn', start: 0, inserted: [message] })
  assert.deepEqual(setup(twice.session).pending(), { 'next-step': ['a'], 'next-turn': [] })
  assert.equal(
    twice.session.fold(inboxFold).misfit?.message,
    `event 1 adds message "${message.id}", which waits already`,
  )
  const unclaimed = setup()
  unclaimed.inbox.append('next-turn', message)
  unclaimed.session.append('user/message', message, { surfaceOp: 'append' })
  assert.deepEqual(setup(unclaimed.session).pending(), { 'next-step': [], 'next-turn': [] })
  assert.equal(
    unclaimed.session.fold(inboxFold).misfit?.message,
    `event 1 reads message "${message.id}", which still waits in "next-turn"`,
  )
})

test('whatever is done, the logged events give the lists, also of any earlier moment', () => {
  const target = fc.constantFrom<InboxTarget>('next-turn', 'next-step')
  const position = fc.oneof(
    fc.integer({ min: -4, max: 4 }),
    fc.constantFrom(Infinity, -Infinity, Number.NaN, 1.5),
  )
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), target, count: fc.integer({ min: 0, max: 3 }) }),
    fc.record({ kind: fc.constant('prepend' as const), target, count: fc.integer({ min: 0, max: 3 }) }),
    fc.record({ kind: fc.constant('splice' as const), target, start: position, remove: position }),
    fc.record({ kind: fc.constant('claim' as const), target }),
    fc.record({ kind: fc.constant('clear' as const) }),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 12 }), operations => {
      const { session, inbox, pending } = setup()
      const model: Record<InboxTarget, string[]> = { 'next-turn': [], 'next-step': [] }
      const moments: [number, Record<InboxTarget, string[]>][] = []
      let count = 0
      const some = (size: number): UserMessage[] => Array.from({ length: size }, () => say(`m${count++}`))
      for (const done of operations) {
        if (done.kind === 'append' || done.kind === 'prepend') {
          const messages = some(done.count)
          inbox[done.kind](done.target, ...messages)
          if (done.kind === 'append') model[done.target].push(...messages.map(wordsOf))
          else model[done.target].unshift(...messages.map(wordsOf))
        } else if (done.kind === 'splice') {
          const messages = some(1)
          inbox.splice(done.target, done.start, done.remove, messages)
          model[done.target].splice(done.start, done.remove, ...messages.map(wordsOf))
        } else if (done.kind === 'claim') {
          inbox.claim(done.target, 1)
          model['next-step'] = []
          if (done.target === 'next-turn') model['next-turn'].shift()
        } else {
          inbox.clear()
          model['next-step'] = []
          model['next-turn'] = []
        }
        assert.deepEqual(pending(), model)
        moments.push([session.length, structuredClone(model)])
      }
      for (const [seq, then] of moments) {
        const lists = session.fold(inboxFold, { before: seq })
        assert.deepEqual(lists['next-turn'].map(wordsOf), then['next-turn'])
        assert.deepEqual(lists['next-step'].map(wordsOf), then['next-step'])
      }
    }),
    { numRuns: 60 },
  )
})
