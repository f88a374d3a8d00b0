import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '@dsh/protocol'
import { fromForeignInput, toForeignCall } from './tool-names.ts'

const call = (name: string, args: JsonValue) => {
  const { name: theirs, input } = toForeignCall(name, args, '/srv/shop')
  return [theirs, input]
}

test('tools have the names and arguments that hook files know', () => {
  assert.deepEqual(call('bash', { command: 'ls', description: 'list', timeoutMs: 5000, workdir: 'a' }), [
    'Bash',
    { command: 'ls', description: 'list', timeout: 5000, workdir: 'a' },
  ])
  assert.deepEqual(call('write', { file_path: 'a.txt', content: 'x' }), [
    'Write',
    { file_path: '/srv/shop/a.txt', content: 'x' },
  ])
  assert.deepEqual(call('read', { file_path: '/etc/hosts', offset: 2 }), [
    'Read',
    { file_path: '/etc/hosts', offset: 2 },
  ])
  assert.deepEqual(call('grep', { pattern: 'x', include: '*.ts', context: 2, ignore_case: true, limit: 3 }), [
    'Grep',
    { pattern: 'x', glob: '*.ts', '-C': 2, '-i': true, head_limit: 3 },
  ])
  assert.deepEqual(call('glob', { pattern: '*', path: 'src' }), [
    'Glob',
    { pattern: '*', path: '/srv/shop/src' },
  ])
  const others = ['todo_write', 'web_fetch', 'web_search', 'mcp__memory__read', 'mine']
  assert.deepEqual(
    others.map(name => toForeignCall(name, {}, '/').name),
    ['TodoWrite', 'WebFetch', 'WebSearch', 'mcp__memory__read', 'mine'],
  )
  assert.deepEqual(call('mine', null), ['mine', {}])
})

test('a call with several edits shows all of them, and is for hooks of either name', () => {
  const args = {
    file_path: '/a',
    old_string: '1',
    new_string: '2',
    edits: [{ old_string: '3', new_string: '4' }],
  }
  const theirs = toForeignCall('edit', args, '/')
  assert.deepEqual(theirs, {
    name: 'MultiEdit',
    names: ['Edit', 'MultiEdit', 'edit'],
    input: {
      file_path: '/a',
      old_string: '1',
      new_string: '2',
      edits: [
        { old_string: '1', new_string: '2' },
        { old_string: '3', new_string: '4' },
      ],
    },
  })
  assert.deepEqual(fromForeignInput('edit', theirs.input, args), args)
  const { file_path, old_string, new_string } = args
  const one = { file_path, old_string, new_string }
  assert.deepEqual(fromForeignInput('edit', toForeignCall('edit', one, '/').input, one), one)
})

test('arguments come back as they went, and those that a hook cannot know stay', () => {
  const args = {
    command: 'ls',
    description: 'list',
    timeoutMs: 5,
    sandbox_permissions: 'network',
    justification: 'x',
  }
  assert.deepEqual(fromForeignInput('bash', { command: 'ls -a', timeout: 9 }, args), {
    ...args,
    command: 'ls -a',
    timeoutMs: 9,
  })
  assert.deepEqual(fromForeignInput('bash', { command: 'ls' }, { command: 'ls', run_in_background: true }), {
    command: 'ls',
  })
  const found = { pattern: 'x', include: '*.ts', limit: 3 }
  assert.deepEqual(fromForeignInput('grep', toForeignCall('grep', found, '/').input, found), found)
})

test('a matcher may mean a tool by our name too', () => {
  const names = (name: string, args: JsonValue = {}) => toForeignCall(name, args, '/srv/shop').names
  assert.deepEqual(names('bash'), ['Bash', 'bash'])
  assert.deepEqual(names('edit', { edits: [{}] }), ['Edit', 'MultiEdit', 'edit'])
  assert.deepEqual(names('look'), ['look'])
})

test('tools that do what others do there are guarded with them, and other arguments lead back', () => {
  const table: readonly (readonly [
    name: string,
    args: Record<string, JsonValue>,
    theirs: string,
    input: object,
  ])[] = [
    ['terminal_send', { sessionId: 't1', text: 'ls' }, 'Bash', { sessionId: 't1', command: 'ls' }],
    [
      'str_replace_editor',
      { command: 'create', path: '/srv/a', file_text: 'x' },
      'Write',
      { command: 'create', file_path: '/srv/a', content: 'x' },
    ],
    [
      'str_replace_editor',
      { command: 'str_replace', path: '/srv/a', old_str: 'x', new_str: 'y' },
      'Edit',
      { command: 'str_replace', file_path: '/srv/a', old_string: 'x', new_string: 'y' },
    ],
    [
      'str_replace_editor',
      { command: 'insert', path: '/srv/a', insert_line: 0, new_str: 'y' },
      'Edit',
      { command: 'insert', file_path: '/srv/a', insert_line: 0, new_string: 'y' },
    ],
    [
      'str_replace_editor',
      { command: 'view', path: '/srv/a' },
      'Read',
      { command: 'view', file_path: '/srv/a' },
    ],
  ]
  for (const [name, args, theirs, input] of table) {
    assert.deepEqual(call(name, args), [theirs, input])
    assert.deepEqual(fromForeignInput(name, toForeignCall(name, args, '/').input, args), args)
    const { command: _, insert_line: __, sessionId: ___, ...others } = toForeignCall(name, args, '/').input
    if (name !== 'terminal_send') assert.deepEqual(fromForeignInput(name, others, args), args)
  }
})

test('names that every object has are names like any other', () => {
  const odd = JSON.parse('{"__proto__":{"a":1},"constructor":"x"}') as Record<string, string>
  for (const name of ['bash', 'look', 'constructor', '__proto__']) {
    assert.deepEqual(call(name, odd), [name === 'bash' ? 'Bash' : name, odd])
    assert.deepEqual(fromForeignInput(name, odd, {}), odd)
  }
})
