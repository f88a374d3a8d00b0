import assert from 'node:assert/strict'
import { test } from 'node:test'
import { momentAt } from '@dsh/harness/plugins/time-travel'
import { Session } from '@dsh/harness/session'
import { answerFact, callFact, headerFact, logOf, textFact, userFact } from '@dsh/harness/testing'
import type { Draft } from '@dsh/harness/testing'
import { SessionId } from '@dsh/protocol'
import { changedBetween } from './files-then.ts'
import type { FilesThen } from './files-then.ts'
import { momentLines } from './moment-text.ts'
import { compareMoments, momentsLines } from './moments-text.ts'

const id = SessionId('s1')

function sessionOf(...drafts: readonly Draft[]): Session {
  return Session.fromRestore(id, logOf(...drafts), { version: 0, id, createdAt: 0 }, { readOnly: 'test' })
}

const file = (path: string, oid = path) => ({ path, kind: 'file', mode: 0o644, size: 10, oid }) as const
const filesOf = (...list: ReturnType<typeof file>[]): FilesThen => ({ point: { after: 2 } as never, list })

const turn: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hi\nthere')],
  ['request/header', headerFact()],
  ['assistant/chunk', textFact('ok')],
  ['assistant/message', answerFact('ok', ['c1', 'c2'])],
  ['tool/call', callFact('c1')],
]

test('a moment is told with its place, what runs, the context, values, problems and files', () => {
  const session = sessionOf(...turn)
  const shown = (seq: number) => ({
    moment: momentAt(session, seq),
    values: { mode: 'ask', todo: [] },
    problems: { stats: 'bad\nstate' },
    files: filesOf(file('a.txt'), file('b\u001b.txt')),
  })
  assert.deepEqual(momentLines(shown(6)), [
    'event #6 · tool/call · 2023-11-14T22:13:20.006Z · in turn 1, step 1',
    '  tool (c1) is called',
    '  tool (c2) is asked for',
    '',
    'context      2 messages, to mock/mock',
    '  #2     user      hi ⏎ there',
    '  #5     assistant ok → tool {} → tool {}',
    '',
    'projections',
    '  mode  "ask"',
    '  todo  []',
    '  stats: cannot be derived: bad ⏎ state',
    '',
    'files        2 files, 20 B, as they were after event #2',
    '  a.txt  10 B',
    '  b␛.txt  10 B',
  ])
  assert.deepEqual(momentLines(shown(4)).slice(0, 2), [
    'event #4 · assistant/chunk · 2023-11-14T22:13:20.004Z · in turn 1, step 1',
    '  request 1.1 is being answered',
  ])
})

test('long lists are cut, and say where the rest is', () => {
  const session = sessionOf(
    ...Array.from({ length: 50 }, (_, n): Draft => ['user/message', userFact(`say ${n}`)]),
  )
  const files = filesOf(...Array.from({ length: 41 }, (_, n) => file(`f${n}`)))
  const lines = momentLines({ moment: momentAt(session, 49), values: undefined, problems: {}, files })
  assert.deepEqual(lines.slice(0, 5), [
    'event #49 · user/message · 2023-11-14T22:13:20.049Z · before the first turn',
    '',
    'context      50 messages, no model asked yet',
    '  … 10 earlier messages; --json has all',
    '  #10    user      say 10',
  ])
  assert.equal(lines.at(-1), '  … 1 more file; --json has all')
  assert.ok(lines.includes('projections  none are derived here'))
})

test('two moments are compared by context, values and files, whichever comes first', () => {
  const session = sessionOf(...turn)
  const at = (seq: number, values: object, files: FilesThen) => ({
    moment: momentAt(session, seq),
    values: values as never,
    problems: {},
    files,
  })
  const early = at(2, { mode: 'ask', title: null }, filesOf(file('a'), file('b')))
  const late = at(6, { mode: 'never', title: null, plan: 1 }, filesOf(file('a', 'x'), file('c')))
  assert.deepEqual(momentsLines(compareMoments(early, late)), [
    'from event #2 to event #6',
    '',
    'context      1 message → 2, 1 the same',
    'projections  2 changed',
    '  mode',
    '    - "ask"',
    '    + "never"',
    '  plan',
    '    - nothing',
    '    + 1',
    'files        3 changed',
    '  ~ a',
    '  - b',
    '  + c',
  ])
  assert.equal(momentsLines(compareMoments(late, early)).at(-1), '  - c')
  const unknown = at(6, early.values, { missing: 'no point' })
  assert.deepEqual(momentsLines(compareMoments(early, unknown)).slice(3), [
    'projections  none changed',
    'files        unknown: no point',
  ])
  assert.deepEqual(changedBetween([file('a')], [{ ...file('a'), mode: 0o755 }]), [
    { path: 'a', change: 'changed' },
  ])
})
