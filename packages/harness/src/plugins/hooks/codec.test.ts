import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHook, mergeOutputs } from './codec.ts'
import type { HookOutput } from './codec.ts'
import { dialects } from './dialect.ts'
import type { HookDialectName, HookPoint } from './events.ts'

interface Given {
  readonly exitCode?: number
  readonly stdout?: string
  readonly stderr?: string
  readonly point?: HookPoint
  readonly dialect?: HookDialectName
}

function decode({ exitCode, stdout = '', stderr = '', point = 'PreToolUse', dialect = 'claude' }: Given) {
  return decodeHook({ exitCode, stdout, stderr }, point, dialects[dialect])
}

const deny = JSON.stringify({ decision: 'block', reason: 'why' })
const broken = '{"decision":'
const say = (value: object): Given => ({ exitCode: 0, stdout: JSON.stringify(value) })
const specific = (fields: object, name = 'PreToolUse'): Given =>
  say({ hookSpecificOutput: { hookEventName: name, ...fields } })

test('what an exit and its output say, by the code of the exit and the kind of the output', () => {
  const table: readonly (readonly [given: Given, output: HookOutput])[] = [
    [
      { exitCode: 0, stdout: deny },
      { decision: 'deny', reason: 'why' },
    ],
    [{ exitCode: 0, stdout: 'all is well' }, {}],
    [{ exitCode: 0, stdout: broken }, { problem: 'it printed broken JSON' }],
    [{ exitCode: 0 }, {}],
    [
      { exitCode: 2, stdout: deny, stderr: ' no \n' },
      { decision: 'deny', reason: 'no' },
    ],
    [{ exitCode: 2, stdout: 'text' }, { decision: 'deny' }],
    [
      { exitCode: 2, stdout: broken, stderr: 'no' },
      { decision: 'deny', reason: 'no' },
    ],
    [{ exitCode: 1, stdout: deny, stderr: 'oops' }, { problem: 'it exited with 1' }],
    [{ exitCode: 127, stdout: 'text' }, { problem: 'it exited with 127' }],
    [{ exitCode: 3, stdout: broken }, { problem: 'it exited with 3' }],
    [{ stdout: deny, stderr: 'late' }, {}],
    [{ stdout: broken }, {}],
  ]
  for (const [given, output] of table) assert.deepEqual(decode(given), output, JSON.stringify(given))
})

test('decisions, and what overrides what', () => {
  const table: readonly (readonly [given: Given, output: HookOutput])[] = [
    [say({ decision: 'approve' }), { decision: 'allow' }],
    [say({ decision: 'block' }), { decision: 'deny' }],
    [say({ decision: 'deny' }), { problem: 'decision is "deny"' }],
    [say({ decision: 7 }), { problem: 'decision is 7' }],
    [say({ reason: 'of nothing' }), {}],
    [
      specific({ permissionDecision: 'ask', permissionDecisionReason: 'odd' }),
      { decision: 'ask', reason: 'odd' },
    ],
    [specific({ permissionDecision: 'block' }), { problem: 'permissionDecision is "block"' }],
    [
      say({
        decision: 'approve',
        reason: 'fine',
        hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' },
      }),
      { decision: 'deny', reason: 'fine' },
    ],
  ]
  for (const [given, output] of table) assert.deepEqual(decode(given), output, JSON.stringify(given))
})

test('what is meant for another event, or does not say for which, counts for nothing but a problem', () => {
  const said = { permissionDecision: 'deny', additionalContext: 'x', updatedInput: { command: 'x' } }
  assert.deepEqual(decode(specific(said, 'PostToolUse')), {
    problem: 'hookEventName is "PostToolUse", not "PreToolUse"',
  })
  assert.deepEqual(decode(say({ hookSpecificOutput: said })), {
    problem: 'hookEventName is undefined, not "PreToolUse"',
  })
  assert.deepEqual(decode(say({ hookSpecificOutput: [] })), { problem: 'hookSpecificOutput is an object' })
})

test('what else a hook may say, and that a field of another kind is a problem of its own', () => {
  const updatedInput = { command: 'ls' }
  assert.deepEqual(
    decode({
      exitCode: 0,
      stdout: ` ${JSON.stringify({
        continue: false,
        stopReason: 'enough',
        systemMessage: 'look',
        suppressOutput: true,
        hookSpecificOutput: { hookEventName: 'PreToolUse', additionalContext: 'more', updatedInput },
      })}\n`,
    }),
    { stop: { reason: 'enough' }, systemMessage: 'look', additionalContext: 'more', updatedInput },
  )
  assert.deepEqual(decode(say({ continue: false })), { stop: { reason: undefined } })
  assert.deepEqual(decode(say({ continue: true, stopReason: 'x' })), {})
  assert.deepEqual(decode(say({ continue: 'no', systemMessage: {}, reason: 5 })), {
    problem: 'continue is "no"; reason is 5; systemMessage is an object',
  })
  assert.deepEqual(decode(specific({ updatedInput: 'ls', additionalContext: 1 })), {
    problem: 'additionalContext is 1; updatedInput is "ls"',
  })
})

test('plain text is context where the session starts or a prompt comes', () => {
  const plain = { exitCode: 0, stdout: ' branch: main\n' }
  for (const dialect of ['claude', 'codex'] as const) {
    const contextAt = (point: HookPoint) => decode({ ...plain, point, dialect }).additionalContext
    assert.equal(contextAt('SessionStart'), 'branch: main')
    assert.equal(contextAt('UserPromptSubmit'), 'branch: main')
    assert.equal(contextAt('PreToolUse'), undefined)
    assert.equal(contextAt('Stop'), undefined)
  }
})

test('an ask of a hook for Codex counts for nothing', () => {
  assert.deepEqual(decode({ ...specific({ permissionDecision: 'ask' }), dialect: 'codex' }), {})
  assert.deepEqual(decode({ ...specific({ permissionDecision: 'deny' }), dialect: 'codex' }), {
    decision: 'deny',
  })
})

test('of several decisions the strongest counts, with its own reasons alone', () => {
  const none: HookOutput = {}
  const allow: HookOutput = { decision: 'allow', reason: 'a' }
  const ask: HookOutput = { decision: 'ask', reason: 'b' }
  const denied: HookOutput = { decision: 'deny', reason: 'c' }
  const table: readonly (readonly [outputs: readonly HookOutput[], decision: unknown, reason: unknown])[] = [
    [[], undefined, undefined],
    [[none], undefined, undefined],
    [[none, allow], 'allow', 'a'],
    [[allow, ask, none], 'ask', 'b'],
    [[ask, denied, allow], 'deny', 'c'],
    [[denied, { decision: 'deny', reason: 'd' }], 'deny', 'c\n\nd'],
    [[{ decision: 'deny' }, ask], 'deny', undefined],
  ]
  for (const [outputs, decision, reason] of table) {
    const merged = mergeOutputs(outputs)
    assert.deepEqual([merged.decision, merged.reason], [decision, reason])
  }
})

test('the first stop and the first other input count, contexts and messages in order', () => {
  const merged = mergeOutputs([
    { additionalContext: '1', systemMessage: 'x' },
    { stop: { reason: undefined }, updatedInput: { a: 1 } },
    { stop: { reason: 'late' }, updatedInput: { b: 2 }, additionalContext: '2', systemMessage: 'y' },
  ])
  assert.deepEqual(merged, {
    decision: undefined,
    reason: undefined,
    stop: { reason: undefined },
    contexts: ['1', '2'],
    messages: ['x', 'y'],
    updatedInput: { a: 1 },
  })
})

test('a decision at a place where none is looked for is a failure, not silence', () => {
  const verdict = JSON.stringify({ decision: 'block', reason: 'no' })
  const misplaced = { problem: 'its JSON does not begin what it printed' }
  for (const stdout of [
    `loading\n${verdict}`,
    `loading\n${JSON.stringify({ decision: 'block' }, null, 2)}`,
    `loading\n${verdict}\nbye`,
    `[${verdict}]`,
  ])
    for (const point of ['PreToolUse', 'UserPromptSubmit'] as const)
      assert.deepEqual(decode({ exitCode: 0, stdout, point }), misplaced, stdout)
  for (const stdout of ['see "decision": it is in {"decision"', 'x\n{"a": 1}', '[1]\n"decision"'])
    assert.deepEqual(decode({ exitCode: 0, stdout, point: 'PreToolUse' }), {}, stdout)
  assert.deepEqual(decode(say({ permissionDecision: 'deny', updatedInput: {} })), {
    problem: 'permissionDecision is not in hookSpecificOutput; updatedInput is not in hookSpecificOutput',
  })
  assert.deepEqual(decode(specific({ decision: 'block' })), {
    problem: 'decision is in hookSpecificOutput',
  })
})

test('other arguments that are nested too deeply to be compared are a failure', () => {
  const nested = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object
  assert.deepEqual(decode(specific({ updatedInput: nested(100) })), { updatedInput: nested(100) })
  assert.deepEqual(decode(specific({ updatedInput: nested(3000) })), {
    problem: 'updatedInput is nested more than 100 levels deep',
  })
})
