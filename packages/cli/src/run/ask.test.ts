import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseReply, questionText } from './ask.ts'

test('only a yes approves; an empty line, a typo or more words do not', () => {
  for (const line of ['y', ' Y ', 'yes']) assert.deepEqual(parseReply(line), { allow: true })
  for (const line of ['', '  ', 'yep', 'ok', 'y please', 'nope', '1'])
    assert.equal(parseReply(line), undefined, line)
})

test('a no may carry its reason', () => {
  assert.deepEqual(parseReply('n'), { allow: false })
  assert.deepEqual(parseReply('No'), { allow: false })
  assert.deepEqual(parseReply(' n  use npm ci instead '), { allow: false, reason: 'use npm ci instead' })
})

test('the question shows the whole command, made inert', () => {
  const command = `echo ${'x'.repeat(400)} \\\n  && rm -rf / \u001b[8m`
  assert.equal(
    questionText({ toolName: 'bash', arguments: { command }, reason: 'not in the sandbox' }),
    `? allow bash\n  │ echo ${'x'.repeat(400)} \\\n  │   && rm -rf / ␛[8m\n  not in the sandbox\n  y once, n, or n and a reason: `,
  )
})

test('a call without a command shows all its arguments', () => {
  assert.equal(
    questionText({ toolName: 'write', arguments: { file_path: 'a' } }),
    '? allow write\n  │ {\n  │   "file_path": "a"\n  │ }\n  y once, n, or n and a reason: ',
  )
})
