import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RestorePoint, RewindRow } from '@dsh/harness/plugins/rewind'
import { Session } from '@dsh/harness/session'
import { SessionId } from '@dsh/protocol'
import { previewLines, questionOf, resultLines, rowLines } from './text.ts'

const id = SessionId('0vabc')
const point: RestorePoint = {
  seq: 9,
  kind: 'step',
  turn: 1,
  after: 8,
  commit: 'a'.repeat(40),
  files: 0,
  insertions: 0,
  deletions: 0,
  changed: [],
  skipped: { ignored: 3, tooLarge: ['big'], more: 2 },
  workspace: '/srv/app',
}

const turnPoint: RestorePoint = { ...point, seq: 6, kind: 'turn', after: 4, skipped: {} }

function row(facts: Partial<RewindRow>): RewindRow {
  return { seq: 5, kind: 'user', turn: 1, text: 'go', files: 0, insertions: 0, deletions: 0, ...facts }
}

test('a row names the event, what it was, and what it changed', () => {
  const session = Session.create(id, undefined, { version: 0, id, createdAt: 1, cwd: '/srv/app' })
  const args = JSON.stringify({ file_path: '/srv/app/src/a.ts' })
  const rows = [
    row({ seq: 2, text: 'what is this?' }),
    row({ text: 'make\nport \u001b[31m9090', files: 2, insertions: 3, deletions: 3, point: turnPoint }),
    row({
      seq: 19,
      kind: 'tool',
      text: 'edit',
      arguments: args,
      files: 1,
      insertions: 1,
      deletions: 0,
      point,
    }),
    row({ seq: 123, kind: 'rewind', text: '', files: 12 }),
    row({ seq: 130, text: 'x'.repeat(90) }),
    row({ seq: 140, kind: 'tool', text: 'odd', arguments: '{' }),
  ]
  assert.equal(
    rowLines(rows, session),
    [
      `  #2  user    "what is this?"  conversation only`,
      `  #5  user    "make ⏎ port ␛[31m9090"${' '.repeat(37)}   2 files  +3 -3`,
      ` #19  edit    src/a.ts${' '.repeat(52)}    1 file  +1 -0  (3 files left out)`,
      `#123  rewind  ${' '.repeat(60)}  12 files`,
      `#130  user    "${'x'.repeat(58)}…   0 files`,
      `#140  odd     ${' '.repeat(60)}   0 files`,
      '',
    ].join('\n'),
  )
})

test('a preview names each file, what happens to it and why not', () => {
  const to = { session: id, seq: 17 }
  const files = [
    { path: 'a', status: 'restore', insertions: 1, deletions: 2 },
    { path: 'b\n', status: 'delete' },
    { path: 'c', status: 'conflict', reason: 'changed-by-user', insertions: 1, deletions: 1 },
    { path: 'd', status: 'unknown', reason: 'not-in-point' },
  ] as const
  const preview = { scope: 'both', to, files } as const
  assert.equal(
    previewLines(preview, id),
    [
      'restore   a  +1 -2',
      'delete    b ⏎ ',
      '! keep    c  changed by you since',
      '! keep    d  not in the restore point',
      'the conversation goes on in a new session, with the events up to 17',
      '',
    ].join('\n'),
  )
  assert.equal(questionOf(preview), '? take 2 files and the conversation back')
  assert.equal(questionOf({ ...preview, files: [] }), '? take the conversation back')
  assert.equal(previewLines({ scope: 'files', to, files: [] }, id), 'the files are as they were\n')
  const other = { scope: 'conversation', to: { ...to, session: SessionId('1x') }, files: [] } as const
  assert.equal(previewLines(other, id), 'the conversation goes on in session 1x\n')
  assert.equal(questionOf(other), '? take the conversation back')
})

test('a result names the session to go on with, what could not be done, and the way back', () => {
  const kept = [
    { path: 'c', reason: 'changed-by-user' },
    { path: 'd', reason: 'failed' },
  ] as const
  const result = {
    session: SessionId('1x'),
    scope: 'both',
    files: [{ path: 'a', action: 'delete' }],
    kept,
  } as const
  assert.equal(
    resultLines(result, id, 'dsh'),
    [
      'session 1x',
      '1 file taken back, 2 kept',
      '! kept  d  could not be written',
      'go on:  dsh run -r 1x "…"',
      'undo:   dsh rewind 1x --undo',
      '',
    ].join('\n'),
  )
})
