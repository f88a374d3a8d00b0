import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childEnvironment } from './environment.ts'

const secrets = {
  API_KEY: 'k',
  AWS_SECRET_ACCESS_KEY: 'k',
  NPM_TOKEN: 't',
  GITHUB_PAT: 't',
  PGPASSFILE_PASSFILE: 'x',
  DATABASE_URL: 'postgres://me:secret@host/db',
  DSH_HOME: '/home/me/.dsh',
}

test('processes get what is known to be harmless and nothing else', () => {
  const harmless = {
    PATH: '/bin',
    HOME: '/home/me',
    LC_ALL: 'C',
    XDG_RUNTIME_DIR: '/run',
    CI: '1',
    no_proxy: 'a',
  }
  const { env, withheld } = childEnvironment(
    { ...harmless, ...secrets, FOO: '1', LCX: '1', GONE: undefined },
    [],
  )
  assert.deepEqual(env, harmless)
  assert.deepEqual(withheld, [...Object.keys(secrets), 'FOO', 'LCX'].toSorted())
})

test('a name that is given passes, whatever it is called', () => {
  const { env } = childEnvironment({ ...secrets, FOO: '1' }, ['NPM_TOKEN', 'FOO', 'NONE'])
  assert.deepEqual(env, { NPM_TOKEN: 't', FOO: '1' })
})

test('a pattern passes names in which no whole word tells a secret', () => {
  const plain = { KEYBOARD: 'us', MONKEY_PATH: '/m', KEYMAP: 'de', COMPASS: 'n', AUTHOR: 'me', 'a.b': '1' }
  const { env, withheld } = childEnvironment({ ...plain, ...secrets }, ['*'])
  assert.deepEqual(env, plain)
  assert.deepEqual(withheld, Object.keys(secrets).toSorted())
  assert.deepEqual(childEnvironment(plain, ['KEY*', 'a.?']).env, { KEYBOARD: 'us', KEYMAP: 'de' })
})

test('a proxy is passed without its password', () => {
  const { env } = childEnvironment(
    { HTTPS_PROXY: 'http://me:secret@proxy:8080/', http_proxy: 'http://p:1' },
    [],
  )
  assert.deepEqual(env, { HTTPS_PROXY: 'http://proxy:8080/', http_proxy: 'http://p:1' })
})
