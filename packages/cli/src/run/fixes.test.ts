import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CliError, usageError } from '../errors.ts'
import { fixFor } from './fixes.ts'
import { againCommand, withPrompt } from './keep-prompt.ts'

const context = { command: 'dsh', home: '/home/me/my home', sessionId: '0abc', keyEnv: 'SOME_KEY' }

test('each failure that a command mends names it', () => {
  const full = Object.assign(new Error('x'), { code: 'ENOSPC' })
  const denied = new Error('outer', { cause: Object.assign(new Error('x'), { code: 'EACCES' }) })
  const badEvent = new Error('outer', { cause: Object.assign(new Error('x'), { code: 'BAD_EVENT', seq: 5 }) })
  const cases: [Parameters<typeof fixFor>[0], string | undefined][] = [
    [{ code: 'AUTH' }, "export SOME_KEY='…'"],
    [{ code: 'UNKNOWN_MODEL' }, 'dsh models'],
    [{ code: 'SESSION_HELD' }, 'dsh session show 0abc'],
    [
      { code: 'SESSION_HELD', cause: Object.assign(new Error('x'), { lock: "/srv/it's/lock" }) },
      "rm -r '/srv/it'\\''s/lock'   # once no dsh works on it",
    ],
    [{ code: 'SESSION_DAMAGED' }, 'dsh session repair 0abc'],
    [{ code: 'SESSION_DAMAGED', cause: badEvent }, 'dsh session fork 0abc'],
    [{ code: 'SESSION_FORMAT_NEWER' }, 'npm install -g dsh@latest'],
    [{ code: 'STORE_FAILED', cause: full }, "df -h '/home/me/my home'"],
    [
      {
        code: 'STORE_FAILED',
        cause: Object.assign(new Error('x'), { errcode: 13, code: 'ERR_SQLITE_ERROR' }),
      },
      "df -h '/home/me/my home'",
    ],
    [
      { code: 'STORE_FAILED', cause: denied },
      'export DSH_HOME=…   # a folder that you may write, in place of /home/me/my home',
    ],
    [{ code: 'SERVER' }, undefined],
  ]
  for (const [failure, fix] of cases) assert.equal(fixFor(failure, context), fix)
  assert.equal(fixFor({ code: 'SESSION_HELD' }, { ...context, sessionId: undefined }), 'dsh session ls')
})

test('the command that says all again quotes what a shell would read otherwise', () => {
  const args = { values: { model: 'a/b', yes: true as const, schema: "it's.json" }, words: ['x'] }
  assert.equal(
    againCommand('do $it\nnow', args, 'dsh'),
    "dsh run --model a/b --yes --schema 'it'\\''s.json' 'do $it\nnow'",
  )
})

test('an error before the first turn keeps the prompt, unless the shell still has it', () => {
  const typed = { values: {}, words: ['task'] }
  const piped = { values: {}, words: [] }
  const usage = usageError('NO_FOLDER', 'gone', 'ls')
  assert.equal(withPrompt(usage, 'task', typed, 'dsh').fix, 'ls')
  assert.equal(withPrompt(usage, 'task', piped, 'dsh').fix, 'ls\ndsh run … task')
  const other = new CliError('STORE_FAILED', 'full', { fix: 'df -h' })
  assert.equal(withPrompt(other, 'task', typed, 'dsh').fix, 'df -h\ndsh run task')
  const kept = withPrompt(new TypeError('a fault'), 'task', typed, 'dsh')
  assert.deepEqual(
    [kept.code, kept.message, kept.exitCode, kept.fix],
    ['INTERNAL', 'a fault', 1, 'dsh run task'],
  )
})
