import assert from 'node:assert/strict'
import { test } from 'node:test'
import { find } from './checks.ts'
import { judgeSpace } from './disk.ts'
import type { Place } from './finding.ts'
import { judgeGit } from './git.ts'
import { lookAtKeys } from './keys.ts'
import { judgeSandbox } from './sandbox.ts'
import { runtimeText } from './runtime.ts'
import { totalText } from './text.ts'

function placeWith(env: Place['env']): Place {
  const runtime = { node: '24.0.0', path: '/usr/bin/node', uid: undefined }
  return { env, home: '/nowhere', command: 'dsh', runtime, isTerminal: false, isDeep: false }
}

const body = '0123456789abcdef0123'

test('a key is judged by its form alone', async () => {
  const cases: readonly (readonly [env: Record<string, string>, codes: readonly string[]])[] = [
    [{ DEEPSEEK_API_KEY: `sk-${body}` }, ['KEY_PRESENT']],
    [{ DEEPSEEK_API_KEY: ` sk-${body}\n` }, ['KEY_PADDED']],
    [{ DEEPSEEK_API_KEY: `sk-${body} x` }, ['KEY_UNUSABLE']],
    [{ DEEPSEEK_API_KEY: `sk-${body}\nsk-${body}` }, ['KEY_UNUSABLE']],
    [{ DEEPSEEK_API_KEY: `'sk-${body}'` }, ['KEY_QUOTED']],
    [{ DEEPSEEK_API_KEY: `Bearer sk-${body}` }, ['KEY_WITH_SCHEME']],
    [{ DEEPSEEK_API_KEY: 'your-api-key-here' }, ['KEY_PLACEHOLDER']],
    [{ DEEPSEEK_API_KEY: 'sk-...' }, ['KEY_PLACEHOLDER']],
    [{ DEEPSEEK_API_KEY: body }, ['KEY_PREFIX']],
    [{ DEEPSEEK_API_KEY: `sk-or-v1-${body}` }, ['KEY_OF_ANOTHER']],
    [{ OPENROUTER_API_KEY: `sk-or-v1-${body}` }, ['KEY_PRESENT']],
    [{ OPENAI_API_KEY: `sk-proj-${body}` }, ['KEY_PRESENT']],
    [{ ZHIPUAI_API_KEY: `${body}.${body}` }, ['KEY_PRESENT']],
    [{ DEEPSEEK_API_KEY: body, DEEPSEEK_BASE_URL: 'http://127.0.0.1:1' }, ['KEY_PRESENT']],
    [{ DEEPSEEK_API_KEY: '  ' }, ['KEY_EMPTY', 'NO_KEY']],
    [{}, ['NO_KEY']],
    [{ MOONSHOT_API_KEY: `sk-${body}`, KIMI_API_KEY: `sk-${body}1` }, ['KEY_PRESENT', 'KEY_PASSED_OVER']],
    [{ MOONSHOT_API_KEY: `sk-${body}`, KIMI_API_KEY: `sk-${body}` }, ['KEY_PRESENT']],
  ]
  for (const [env, codes] of cases) {
    const found = await lookAtKeys(placeWith(env))
    assert.deepEqual(
      found.map(({ code }) => code),
      codes,
      JSON.stringify(env),
    )
    assert.ok(!JSON.stringify(found).includes(body))
  }
})

test('room is judged by what is free for this user, and by the files that can be made', () => {
  const sound = { type: 0xef53, bsize: 4096, bavail: 1_000_000, files: 100, ffree: 50 }
  const codes = (change: object): readonly string[] =>
    judgeSpace({ ...sound, ...change }, '/srv/home').map(({ code }) => code)
  assert.deepEqual(judgeSpace(sound, '/srv/home')[0]?.detail, '4.1 GB free')
  assert.deepEqual(codes({}), ['OK'])
  assert.deepEqual(codes({ bavail: 100_000 }), ['DISK_SCARCE'])
  assert.deepEqual(codes({ bavail: 1000 }), ['DISK_LOW'])
  assert.deepEqual(codes({ ffree: 0 }), ['DISK_NO_FILES'])
  assert.deepEqual(codes({ files: 0, ffree: 0 }), ['OK'], 'some file systems count none')
})

test('a home on another machine, or in memory, is told of', { skip: process.platform !== 'linux' }, () => {
  const on = (type: number): readonly string[] =>
    judgeSpace({ type, bsize: 4096, bavail: 1_000_000, files: 1, ffree: 1 }, '/srv/home').map(
      ({ code }) => code,
    )
  assert.deepEqual(on(0x6969), ['OK', 'DISK_REMOTE'])
  assert.deepEqual(on(0x01021994), ['OK', 'DISK_IN_MEMORY'])
})

test('the version of git is read from whatever is around it', () => {
  const codeOf = (text: string): unknown => judgeGit(text).map(({ code, detail }) => [code, detail])[0]
  assert.deepEqual(codeOf('git version 2.39.5 (Apple Git-154)\n'), ['OK', 'git 2.39.5'])
  assert.deepEqual(codeOf('git version 2.47.0.windows.1\n'), ['OK', 'git 2.47.0.windows.1'])
  assert.deepEqual(codeOf('git version 2.31.8'), ['GIT_OLD', 'git 2.31.8; 2.32 or newer is better'])
  assert.deepEqual(codeOf('x'), ['GIT_OLD', 'git of an unknown version; 2.32 or newer is better'])
})

test('where Node comes from is told', () => {
  const at = (path: string): string => runtimeText({ node: '24.1.0', path, uid: 1 })
  assert.match(at('/usr/bin/node'), /^Node 24\.1\.0 · \w+ \w+ · \/usr\/bin\/node$/)
  assert.match(at('/srv/node_modules/node/bin/node'), /, of the npm package node$/)
})

test('what a check fails at is a problem under its name', async () => {
  const look = async (): Promise<never> => {
    throw new Error('no luck')
  }
  assert.deepEqual(await find({ name: 'luck', look }, placeWith({})), [
    {
      check: 'luck',
      state: 'problem',
      code: 'CHECK_FAILED',
      detail: 'no luck',
      fix: 'look at what it names',
    },
  ])
})

test('a check that does not come to an end is a problem under its name', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const found = find({ name: 'stuck', look: () => new Promise<never>(() => {}) }, placeWith({}))
  t.mock.timers.tick(10_000)
  assert.deepEqual(
    (await found).map(({ code, detail }) => [code, detail]),
    [['CHECK_TOO_SLOW', 'no answer within 10 s']],
  )
})

test('the last line counts', () => {
  const finding = { check: 'x', code: 'X', detail: 'x' }
  assert.equal(totalText([{ ...finding, state: 'ok' }]), 'no problem')
  const both = [
    { ...finding, state: 'note' },
    { ...finding, state: 'problem' },
    { ...finding, state: 'problem' },
  ] as const
  assert.equal(totalText(both), '2 problems, 1 note')
})

test('a machine that cannot confine says so, and what to do', () => {
  assert.deepEqual(
    judgeSandbox({ isReady: true, runner: 'bubblewrap', enforcement: 'full' })[0]?.detail,
    'bubblewrap',
  )
  assert.deepEqual(judgeSandbox({ isReady: false, reason: 'it is not installed; install it' }), [
    {
      state: 'note',
      code: 'NO_SANDBOX',
      detail:
        'none: you are asked before each command, and it runs with your own rights; it is not installed; install it',
    },
  ])
})
