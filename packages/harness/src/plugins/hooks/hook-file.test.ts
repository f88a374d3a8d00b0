import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dialects } from './dialect.ts'
import type { HookDialectName } from './events.ts'
import { parseHookFile } from './hook-file.ts'
import { toMatcher } from './matcher.ts'

const read = (value: unknown, dialect: HookDialectName = 'claude', label = 'hooks.json') =>
  parseHookFile(typeof value === 'string' ? value : JSON.stringify(value), {
    label,
    dialect: dialects[dialect],
  })

const hook = (rest: object = {}) => ({ type: 'command', command: 'true', ...rest })
const problemOf = (rest: object, dialect?: HookDialectName): string | undefined =>
  read({ hooks: { Stop: [{ hooks: [hook(rest)] }] } }, dialect).problems[0]

test('a matcher of words and bars names tools exactly for Claude Code, all else is a pattern', () => {
  const table: readonly (readonly [
    matcher: string | undefined,
    name: string,
    claude: boolean,
    codex: boolean,
  ])[] = [
    [undefined, 'Bash', true, true],
    ['', 'Bash', true, true],
    ['*', 'Bash', true, true],
    ['Bash', 'Bash', true, true],
    ['Bash', 'BashOutput', false, true],
    ['bash', 'Bash', false, false],
    ['Edit|Write', 'Write', true, true],
    ['Edit|Write', 'NotebookEdit', false, true],
    ['Notebook.*', 'NotebookEdit', true, true],
    ['^Ba', 'Bash', true, true],
    ['mcp__memory__.*', 'mcp__memory__read', true, true],
    ['mcp__memory', 'mcp__memory__read', false, true],
  ]
  for (const [matcher, name, claude, codex] of table) {
    assert.equal(toMatcher(matcher, 'names')([name]), claude, `names ${matcher} ${name}`)
    assert.equal(toMatcher(matcher, 'pattern')([name]), codex, `pattern ${matcher} ${name}`)
  }
})

test('a file gives its hooks in order, each with its place', () => {
  const { handlers, problems } = read({
    hooks: {
      PreToolUse: [{ matcher: 'Bash', hooks: [hook({ timeout: 1.5 }), hook({ command: 'b', name: 'x' })] }],
      Stop: [{ hooks: [hook({ async: false })] }],
    },
  })
  assert.deepEqual(problems, [])
  assert.deepEqual(
    handlers.map(({ id, point, matcher, command, timeoutMs }) => [id, point, matcher, command, timeoutMs]),
    [
      ['hooks.json PreToolUse[0].hooks[0]', 'PreToolUse', 'Bash', 'true', 1500],
      ['hooks.json PreToolUse[0].hooks[1]', 'PreToolUse', 'Bash', 'b', undefined],
      ['hooks.json Stop[0].hooks[0]', 'Stop', undefined, 'true', undefined],
    ],
  )
})

test('a time-out that is none is refused with its value', () => {
  const table: readonly (readonly [timeout: unknown, shown: string])[] = [
    [0, '0'],
    [-1, '-1'],
    ['5', '"5"'],
    [1e12, '1000000000000'],
    [null, 'null'],
    [86_401, '86401'],
  ]
  for (const [timeout, shown] of table)
    assert.equal(
      problemOf({ timeout }),
      `hooks.json Stop[0].hooks[0] is left out: its timeout is ${shown}, not a number of seconds above 0 and at most 86400`,
    )
  assert.match(problemOf({ timeoutSec: 0 }, 'codex') ?? '', /its timeoutSec is 0, not/)
  assert.equal(problemOf({ timeoutSec: 0 }), undefined, 'Claude Code does not know it')
})

test('what is not understood is left out alone, and each time it is said why', () => {
  const table: readonly (readonly [value: unknown, problem: string])[] = [
    [{}, 'hooks.json is left out: it has no "hooks"'],
    [{ hooks: { Stop: {} } }, 'hooks.json Stop is left out: it is no list'],
    [
      { hooks: { Stopp: [] } },
      'hooks.json Stopp is left out: there is no such event here; did you mean "Stop"?',
    ],
    [{ hooks: { PreCompact: [] } }, 'hooks.json PreCompact is left out: there is no such event here'],
    [{ hooks: { Stop: [hook()] } }, 'hooks.json Stop[0] is left out: it has no list "hooks"'],
    [
      { hooks: { Stop: [{ matcher: 5, hooks: [] }] } },
      'hooks.json Stop[0] is left out: its matcher is 5, no text',
    ],
    [{ hooks: { Stop: [{ hooks: ['ls'] }] } }, 'hooks.json Stop[0].hooks[0] is left out: it is no object'],
    [
      { hooks: { Stop: [{ hooks: [{ type: 'prompt', prompt: 'x' }] }] } },
      'hooks.json Stop[0].hooks[0] is left out: hooks of type "prompt" do not run here',
    ],
  ]
  for (const [value, problem] of table) assert.deepEqual(read(value).problems, [problem])
  assert.equal(problemOf({ command: ' ' }), 'hooks.json Stop[0].hooks[0] is left out: it has no command')
  for (const field of ['if', 'args', 'shell', 'async', 'asyncRewake'])
    assert.equal(
      problemOf({ [field]: true }),
      `hooks.json Stop[0].hooks[0] is left out: its "${field}" is not supported`,
    )
})

test('settings without hooks, and with all of them switched off, have nothing to say', () => {
  assert.deepEqual(read({ model: 'x' }, 'claude', '.claude/settings.local.json'), {
    handlers: [],
    problems: [],
  })
  const off = { disableAllHooks: true, hooks: { Stop: [{ hooks: [hook()] }] } }
  assert.deepEqual(read(off), { handlers: [], problems: [] })
})

test('what was to guard prompts or calls and cannot be used stays, for all that it may have been meant for', () => {
  const guard = (rest: object, matcher: unknown = 'Bash') => ({
    hooks: { PreToolUse: [{ matcher, hooks: [hook(rest)] }] },
  })
  const at = 'PreToolUse[0].hooks[0]'
  const table: readonly (readonly [value: unknown, place: string, why: RegExp, guardsRead: boolean])[] = [
    [guard({ timeout: 0 }), at, /^its timeout is 0, not/, false],
    [guard({ timeout: '5' }), at, /^its timeout is "5", not/, false],
    [guard({ if: 'Bash(rm *)' }), at, /^its "if" is not supported$/, false],
    [guard({ type: 'http' }), at, /^hooks of type "http" do not run here$/, false],
    [guard({ command: '' }), at, /^it has no command$/, false],
    [guard({}, '('), 'PreToolUse[0]', /^its matcher "\(" is no pattern/, true],
    [guard({}, ['Bash']), 'PreToolUse[0]', /^its matcher is \["Bash"\], no text$/, true],
    [{ hooks: { PreToolUse: [hook()] } }, 'PreToolUse[0]', /^it has no list "hooks"$/, true],
    [{ hooks: { PreToolUse: {} } }, 'PreToolUse', /^it is no list$/, true],
    [{ hooks: { preToolUse: [] } }, 'preToolUse', /^there is no such event here; did you mean/, true],
    ['{', '', /^it is no JSON: /, true],
    ['', '', /^it is no JSON: /, true],
    ['[]', '', /^it is no JSON object$/, true],
    [{ hooks: [] }, '', /^its "hooks" are no object$/, true],
    [{ PreToolUse: [] }, '', /^its "PreToolUse" is not in "hooks"$/, true],
  ]
  for (const [value, place, why, guardsRead] of table) {
    const { handlers, problems } = read(value)
    assert.deepEqual([handlers.length, problems], [1, []], JSON.stringify(value))
    const [{ id, point, unusable, matches } = assert.fail()] = handlers
    assert.deepEqual([id, point], [`hooks.json ${place}`.trim(), 'PreToolUse'])
    assert.match(unusable ?? '', why)
    assert.deepEqual([matches(['Bash']), matches(['Read'])], [true, guardsRead], JSON.stringify(value))
  }
  const prompts = read({ hooks: { UserPromptSubmit: [{ hooks: [hook({ timeout: 0 })] }] } })
  assert.deepEqual(
    prompts.handlers.map(({ point, unusable }) => [point, unusable !== undefined]),
    [['UserPromptSubmit', true]],
  )
})

test('a hook that would run behind a call guards none, and is left out', () => {
  for (const field of ['async', 'asyncRewake'])
    assert.deepEqual(read({ hooks: { PreToolUse: [{ hooks: [hook({ [field]: true })] }] } }), {
      handlers: [],
      problems: [`hooks.json PreToolUse[0].hooks[0] is left out: its "${field}" is not supported`],
    })
})

test('a mark of the byte order before a file is no part of it', () => {
  const { handlers, problems } = read(`\uFEFF${JSON.stringify({ hooks: { Stop: [{ hooks: [hook()] }] } })}`)
  assert.deepEqual([handlers.length, problems], [1, []])
})
