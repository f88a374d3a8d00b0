import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeRequest, fitsBash, fitsRunner, readNews } from './runner.ts'

test('a request is its fields, each with an end that no field can hold', () => {
  const request = { id: 'ab', count: 7, pipe: 'cd', cwd: '/srv/a b', command: 'echo\n"x"' }
  assert.equal(encodeRequest(request), 'ab\x007\0cd\0/srv/a b\0echo\n"x"\0')
})

test('lines of the runner are read, and others are nothing', () => {
  assert.deepEqual(readNews('ready x-Y_9.12'), { kind: 'ready', mark: 'x-Y_9.12' })
  assert.deepEqual(readNews('0af begun 12'), { kind: 'begun', id: '0af', value: 12 })
  assert.deepEqual(readNews('0af refused 0'), { kind: 'refused', id: '0af', value: 0 })
  assert.deepEqual(readNews('0af ended 255'), { kind: 'ended', id: '0af', value: 255 })
  for (const line of [
    '',
    'ready',
    'ready a b',
    '0af ended',
    '0af ended -1',
    'ended 0',
    '0af over 1',
    ' 0af ended 1',
  ])
    assert.equal(readNews(line), undefined, line)
})

test('what is long, or begins nowhere, is not for the runner', () => {
  assert.ok(fitsRunner('true', '/srv'))
  assert.ok(fitsRunner('x'.repeat(8188), '/srv'))
  assert.ok(!fitsRunner('x'.repeat(8189), '/srv'))
  assert.ok(!fitsRunner('ü'.repeat(4095), '/srv'), 'bytes count, not characters')
  assert.ok(!fitsRunner('true', 'srv'))
})

test('an environment in which bash finds something for itself is not for the runner', () => {
  assert.ok(
    fitsBash({ PATH: '/bin', HOME: '/root', LC_ALL: 'C', DSH_HOME: '/d', npm_config_cache: '/c', A1: '' }),
  )
  for (const name of [
    'BASH_ENV',
    'BASHOPTS',
    'SHELLOPTS',
    'POSIXLY_CORRECT',
    'IFS',
    'SHLVL',
    'PWD',
    'TMOUT',
    '_',
  ])
    assert.ok(!fitsBash({ PATH: '/bin', [name]: 'x' }), name)
  for (const name of ['dsh_id', 'BASH_FUNC_ls%%', 'a.b', '1a', ''])
    assert.ok(!fitsBash({ [name]: 'x' }), name)
})
