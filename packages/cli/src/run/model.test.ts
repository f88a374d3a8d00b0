import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorLines, reportOf } from '../report-error.ts'
import { chooseModel } from './model.ts'
import type { ModelQuestion, Providers } from './model.ts'

const providers: Providers = {
  deep: {
    name: 'Deep',
    apiKeyEnv: ['DEEP_KEY'],
    defaultModel: 'flash',
    models: { flash: {} },
    keysURL: 'https://deep.example/keys',
  },
  open: { name: 'Open', apiKeyEnv: ['OPEN_KEY', 'OPEN_OTHER_KEY'], defaultModel: 'big' },
  local: { name: 'Local', keyOptional: true, apiKeyEnv: ['LOCAL_KEY'] },
}

function choose(question: Partial<ModelQuestion>) {
  return chooseModel({ env: {}, providers, ...question })
}

function refusal(question: Partial<ModelQuestion>): [number, string] {
  try {
    choose(question)
  } catch (error) {
    const report = reportOf(error)
    return [report.exitCode, errorLines(report)]
  }
  throw new Error('accepted')
}

test('without a key the demo answers', () => {
  assert.deepEqual(choose({}), { provider: 'demo', model: 'demo', reason: 'demo' })
  assert.equal(choose({ env: { DEEP_KEY: ' \n', LOCAL_KEY: '' } }).reason, 'demo')
})

test('the first key in the order of providers decides, whichever of its variables holds it', () => {
  const env = { OPEN_OTHER_KEY: 'sk-1', DEEP_KEY: ' sk-2\n' }
  assert.deepEqual(choose({ env }), { provider: 'deep', model: 'flash', reason: 'key', keyEnv: 'DEEP_KEY' })
  assert.deepEqual(choose({ env: { OPEN_OTHER_KEY: 'sk-1' } }), {
    provider: 'open',
    model: 'big',
    reason: 'key',
    keyEnv: 'OPEN_OTHER_KEY',
  })
})

test('what is asked for wins over the session, the session over the last choice, that over keys', () => {
  const env = { DEEP_KEY: 'a', OPEN_KEY: 'b' }
  const session = { provider: 'open', model: 'small' }
  const last = { provider: 'open', model: 'tiny' }
  assert.equal(choose({ env, session, last, asked: 'deep/a/b:free' }).model, 'a/b:free')
  assert.equal(choose({ env, session, last }).model, 'small')
  assert.equal(choose({ env, last }).model, 'tiny')
  assert.equal(choose({ env: { DEEP_KEY: 'a' }, last }).model, 'flash')
  assert.equal(choose({ last: { provider: 'gone', model: 'x' } }).reason, 'demo')
  assert.equal(choose({ env, session: { provider: 'demo', model: 'demo' } }).provider, 'demo')
})

test('a host of one own needs no key', () => {
  assert.deepEqual(choose({ asked: 'local/llama' }), { provider: 'local', model: 'llama', reason: 'asked' })
})

test('a missing key names the variable and where a key is to be had', () => {
  assert.deepEqual(refusal({ asked: 'deep/flash' }), [
    3,
    "error MISSING_CREDENTIAL: deep/flash needs a key of Deep, and DEEP_KEY is not set\n  export DEEP_KEY='…'   # from https://deep.example/keys\n",
  ])
  assert.match(
    refusal({ session: { provider: 'open', model: 'x' } })[1],
    /OPEN_KEY or OPEN_OTHER_KEY is not set/,
  )
})

test('a key that fits no header is refused without being shown', () => {
  for (const key of ['sk-abc🐳', 'sk-ａｂｃ', 'sk-a b', 'sk-a\nb', 'sk\u0000']) {
    const [code, lines] = refusal({ env: { DEEP_KEY: key } })
    assert.equal(code, 3)
    assert.match(lines, /^error INVALID_CREDENTIAL: the key in DEEP_KEY cannot be used: character \d of \d /)
    assert.ok(lines.endsWith("\n  export DEEP_KEY='…'\n") && !lines.includes(key), lines)
  }
})

test('an unknown provider is refused with the nearest one, a bare name with its routes', () => {
  assert.deepEqual(refusal({ asked: 'depe/flash' }), [
    2,
    'error UNKNOWN_MODEL: there is no provider "depe" for the model "depe/flash"; did you mean "deep"?\n  dsh models\n',
  ])
  const bare: [string, string][] = [
    ['flash', 'deep/flash'],
    ['open', 'open/big'],
    ['deep/', 'deep/flash'],
    ['/flash', 'deep/flash'],
    ['what', 'PROVIDER/MODEL'],
    ['constructor', 'PROVIDER/MODEL'],
  ]
  for (const [asked, route] of bare)
    assert.deepEqual(refusal({ asked }), [
      2,
      `error UNKNOWN_MODEL: "${asked}" is no PROVIDER/MODEL\n  dsh run -m ${route} …\n`,
    ])
  assert.match(refusal({ asked: 'constructor/x' })[1], /there is no provider "constructor"/)
  assert.match(refusal({ asked: 'demo/x' })[1], /the demo has no model "x"/)
})
