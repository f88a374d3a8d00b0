import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PermissionRule } from '@dsh/harness/plugins/approval'
import { parseReply, questionText } from './ask.ts'
import type { ShownQuestion } from './ask.ts'

const rules: readonly PermissionRule[] = []
const bash: ShownQuestion = {
  toolName: 'bash',
  arguments: { command: 'git push' },
  proposals: [{ text: 'git push …, with the network', rules }],
}
const write: ShownQuestion = {
  toolName: 'write',
  arguments: { file_path: '/srv/x/a', content: 'one\ntwo' },
  reason: '/srv/x/a is outside of the workspace /srv/shop',
  view: { card: 'diff', title: '/srv/x/a', data: { path: '/srv/x/a', content: 'one\ntwo' } },
  proposals: [
    { text: 'write /srv/x/a', rules },
    { text: 'write /srv/x/', rules },
  ],
}

test('only a yes approves; an empty line, a typo or more words do not', () => {
  for (const line of ['y', ' Y ', 'yes'])
    assert.deepEqual(parseReply(line, bash), { outcome: 'allowed-once' })
  for (const line of ['', '  ', 'yep', 'ok', 'y please', 'nope', '1', 's please', 'session', 'e'])
    assert.equal(parseReply(line, bash), undefined, line)
})

test('a no may carry its reason, or the command to run instead', () => {
  assert.deepEqual(parseReply('n', bash), { outcome: 'rejected' })
  assert.deepEqual(parseReply('No', bash), { outcome: 'rejected' })
  assert.deepEqual(parseReply(' n  use npm ci instead ', bash), {
    outcome: 'rejected',
    reason: 'use npm ci instead',
  })
  assert.deepEqual(parseReply('e git push -n', bash), { outcome: 'rejected', replacement: 'git push -n' })
})

test('what is allowed beyond the call is what was offered and nothing else', () => {
  assert.deepEqual(parseReply('s', bash), { outcome: 'allowed-once', scope: 'session', proposal: 0 })
  assert.deepEqual(parseReply('R', bash), { outcome: 'allowed-once', scope: 'rule', proposal: 0 })
  assert.deepEqual(parseReply('r2', write), { outcome: 'allowed-once', scope: 'rule', proposal: 1 })
  for (const line of ['s2', 's1', 'r0']) assert.equal(parseReply(line, bash), undefined, line)
  for (const line of ['s', 'r', 's2'])
    assert.equal(parseReply(line, { ...bash, proposals: [] }), undefined, line)
  for (const line of ['s3', 'e make']) assert.equal(parseReply(line, write), undefined, line)
})

test('the question shows the whole command, made inert, its reason and what each answer covers', () => {
  const command = `echo ${'x'.repeat(400)} \\\n  && rm -rf / \u001b[8m`
  assert.equal(
    questionText({
      ...bash,
      arguments: { command, description: 'a greeting', workdir: 'sub' },
      reason: 'it wants the network: to see',
    }),
    `? allow bash
  │ in sub
  │ echo ${'x'.repeat(400)} \\
  │   && rm -rf / ␛[8m
  it wants the network: to see
  y   once
  s   for this session: git push …, with the network
  r   from now on in this folder: git push …, with the network
  n   no; a reason may follow
  e   no, but this command: write it behind
  y, s, r, n or e: `,
  )
})

test('a change of a file is shown as a whole', () => {
  assert.equal(
    questionText(write),
    `? allow write
  │ /srv/x/a
  │ + one
  │ + two
  /srv/x/a is outside of the workspace /srv/shop
  y   once
  s   for this session: write /srv/x/a
  s2  for this session: write /srv/x/
  r   from now on in this folder: write /srv/x/a
  r2  from now on in this folder: write /srv/x/
  n   no; a reason may follow
  y, s, s2, r, r2 or n: `,
  )
  const edits = [{ oldText: 'c', newText: 'd' }]
  const data = { path: '/a', oldText: 'a\nb', newText: '', edits }
  assert.match(
    questionText({ ...write, proposals: [], view: { card: 'diff', title: '/a', data } }),
    /│ \/a\n {2}│ - a\n {2}│ - b\n {2}│ - c\n {2}│ \+ d\n/,
  )
})

test('a call that no card can show shows all its arguments, and offers only what there is', () => {
  assert.equal(
    questionText({ toolName: 'server', arguments: { what: 'a' }, proposals: [] }),
    `? allow server
  │ {
  │   "what": "a"
  │ }
  y   once
  n   no; a reason may follow
  y or n: `,
  )
})
