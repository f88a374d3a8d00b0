import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unknownToolText } from './near.ts'

test('a call to a tool that does not exist is told what is near', () => {
  const names = ['bash', 'glob', 'mcp__files__read_file', 'read', 'todo_write']
  const near = (name: string): string => unknownToolText(name, names).split('; ')[1] ?? ''
  assert.equal(near('Bash'), 'did you mean "bash"?')
  assert.equal(near('functions.bash'), 'did you mean "bash"?')
  assert.equal(near('default_api:bash'), 'did you mean "bash"?')
  assert.equal(near('default_api/TodoWrite'), 'did you mean "todo_write"?')
  assert.equal(near('files.read_file'), 'did you mean "mcp__files__read_file"?')
  assert.equal(near('globb'), 'did you mean "glob"?')
  assert.equal(near('screenshot'), 'the tools are bash, glob, mcp__files__read_file, read, todo_write')
})

test('a call where there are no tools is told so', () => {
  assert.equal(unknownToolText('bash', []), 'unknown tool "bash"; there are no tools')
})

test('of many tools only some are listed, and a huge name is cut', () => {
  const names = Array.from({ length: 200 }, (_, index) => `tool_number_${String(index).padStart(3, '0')}`)
  const text = unknownToolText('x'.repeat(1_000_000), names)
  assert.ok(text.startsWith(`unknown tool "${'x'.repeat(77)}…"; the tools are tool_number_000, `))
  assert.ok(text.endsWith('tool_number_019 and 180 more'))
  assert.ok(text.length < 500)
})

test('a name without any letter is near nothing', () => {
  assert.equal(unknownToolText('.', ['bash']), 'unknown tool "."; the tools are bash')
  assert.equal(unknownToolText('', ['bash']), 'unknown tool ""; the tools are bash')
})
