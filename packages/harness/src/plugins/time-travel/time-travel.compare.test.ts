import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { EpochHeader } from '@dsh/protocol'
import { Session } from '../../core/session/index.ts'
import { answerFact, logOf, resultFact, textFact, userFact } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { compareRequests, momentAt, rebuildRequest } from './index.ts'

const tool = (name: string, description = name) => ({ name, description, parameters: {} })
const header = (over: Partial<EpochHeader> = {}): EpochHeader => ({
  config: { provider: 'p', model: 'm' },
  system: 'Be brief.',
  tools: [tool('a'), tool('b')],
  ...over,
})

function sessionOf(...drafts: readonly Draft[]): Session {
  const id = SessionId('s')
  return Session.fromRestore(id, logOf(...drafts), { version: 0, id, createdAt: 0 }, { readOnly: 'test' })
}

/** What compares two requests that differ in their header alone. */
function headers(before: EpochHeader, after: EpochHeader) {
  const session = sessionOf(
    ['user/message', userFact('hi')],
    ['request/header', { header: before, reason: 'initial' }],
    ['request/header', { header: after, reason: 'change' }],
  )
  return comparison(session, 2, 3)
}

function comparison(session: Session, before: number, after: number) {
  const [a, b] = [before, after].map(seq => rebuildRequest(session, seq))
  assert.ok(a && b)
  return compareRequests(a, b, session)
}

test('why a cache broke is told by what changed first, in the order in which providers read', () => {
  const base = header()
  const cases: [EpochHeader, object | undefined][] = [
    [base, undefined],
    [header({ config: { provider: 'p', model: 'n' } }), { kind: 'route', before: 'p/m', after: 'p/n' }],
    [
      header({ config: { provider: 'p', model: 'm', reasoningEffort: 'high' } }),
      { kind: 'config', before: 'none', after: 'high' },
    ],
    [
      header({ tools: [tool('a', 'better'), tool('c')], system: 'changed too' }),
      { kind: 'tools', added: ['c'], removed: ['b'], changed: ['a'], reordered: false },
    ],
    [
      header({ tools: [tool('b'), tool('a')] }),
      { kind: 'tools', added: [], removed: [], changed: [], reordered: true },
    ],
    [
      header({ tools: [tool('a'), tool('b'), tool('c')] }),
      { kind: 'tools', added: ['c'], removed: [], changed: [], reordered: false },
    ],
    [header({ system: 'Be long.' }), { kind: 'system' }],
    [header({ config: { provider: 'p', model: 'm', maxTokens: 5, stop: ['x'] } }), undefined],
  ]
  for (const [after, broken] of cases) assert.deepEqual(headers(base, after).broken, broken)
})

test('what is identical is counted in bytes to the very character, and limits of the answer are no difference', () => {
  const found = headers(header({ system: 'Schöner 𝒜' }), header({ system: 'Schöner 𝒞' }))
  const { first, sharedBytes } = found
  const tools = Buffer.byteLength(JSON.stringify(tool('a')) + JSON.stringify(tool('b')))
  assert.equal(sharedBytes, Buffer.byteLength('p/m') + tools + Buffer.byteLength('Schöner '))
  assert.deepEqual(first, { part: 'system', index: 0, before: 'Schöner 𝒜', after: 'Schöner 𝒞' })
  const limits = headers(header(), header({ config: { provider: 'p', model: 'm', maxTokens: 5 } }))
  assert.deepEqual(limits.harmless, ['maxTokens unset → 5'])
  assert.equal(limits.first, undefined)
  assert.equal(limits.sharedBytes, limits.afterBytes)
})

test('a text that differs late is shown from shortly before that place on', () => {
  const long = 'x'.repeat(100)
  const { first } = headers(header({ system: `${long}one` }), header({ system: `${long}two` }))
  assert.deepEqual([first?.before, first?.after], [`…${'x'.repeat(30)}one`, `…${'x'.repeat(30)}two`])
})

const conversation: readonly Draft[] = [
  ['user/message', userFact('hi')],
  ['request/header', { header: header(), reason: 'initial' }],
  ['assistant/message', answerFact('', ['c'])],
  ['tool/result', resultFact('c', 'a long result')],
]

test('a history that only grew breaks nothing, whichever of the two comes first', () => {
  const session = sessionOf(...conversation)
  const grown = comparison(session, 2, 4)
  assert.equal(grown.broken, undefined)
  assert.equal(grown.sharedMessages, 1)
  assert.equal(grown.sharedBytes, grown.beforeBytes)
  assert.equal(grown.first?.before, undefined)
  const back = comparison(session, 4, 2)
  assert.deepEqual([back.broken, back.first?.after], [undefined, undefined])
})

test('a replaced history is told with the event that stands for it, and what it hid', () => {
  const session = sessionOf(...conversation, [
    'user/message',
    userFact('summary'),
    { surfaceOp: { op: 'replace', start: 2, end: 3 }, sourceEventSeqs: [2, 3] },
  ])
  const { broken, sharedMessages } = comparison(session, 4, 5)
  assert.equal(sharedMessages, 1)
  assert.deepEqual(broken, {
    kind: 'history',
    index: 1,
    replacedBy: { seq: 4, type: 'user/message', start: 2, end: 3 },
  })
})

test('a moment tells where in the turn it is, what runs, what waits, and what the model has before it', () => {
  const session = sessionOf(
    ['agent/inbox/spliced', { target: 'next-turn', start: 0, inserted: [userFact('hi')] }],
    ['turn/start', { turn: 1 }],
    ['agent/inbox/spliced', { target: 'next-turn', start: 0, removedCount: 1, inserted: [] }],
    ['step/start', { turn: 1, step: 1 }],
    ['user/message', userFact('hi')],
    ['request/header', { header: header(), reason: 'initial' }],
    ['assistant/chunk', textFact('ok')],
    ['assistant/message', answerFact('ok', ['c'])],
    ['tool/call', { turn: 1, step: 1, callId: 'c' as never, name: 'tool', arguments: '{}' }],
    ['tool/result', resultFact('c', 'done')],
    ['step/end', { turn: 1, step: 1 }],
    ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  )
  const told = (seq: number): string => {
    const { cursor, calls, isAsking, history, header: envelope, queued } = momentAt(session, seq)
    const place = `${cursor.openTurn ?? '-'}.${cursor.openStep ?? '-'}`
    const waiting = calls.map(call => `${call.callId}@${call.callSeq ?? '-'}`).join()
    return [
      place,
      `${history.seqs.join()}|`,
      `${queued.length}q`,
      isAsking ? 'asks' : '',
      waiting,
      envelope ? 'h' : '',
    ]
      .filter(Boolean)
      .join(' ')
  }
  assert.deepEqual([0, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(told), [
    '-.- | 1q',
    '1.1 | 0q',
    '1.1 4| 0q',
    '1.1 4| 0q h',
    '1.1 4| 0q asks h',
    '1.1 4,7| 0q c@- h',
    '1.1 4,7| 0q c@8 h',
    '1.1 4,7,9| 0q h',
    '1.- 4,7,9| 0q h',
    '-.- 4,7,9| 0q h',
  ])
  assert.throws(() => momentAt(session, 12), { name: 'RangeError', message: 'session "s" has no event 12' })
})
