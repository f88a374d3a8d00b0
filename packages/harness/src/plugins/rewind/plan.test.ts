import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planOf } from './plan.ts'
import type { PlanInput } from './plan.ts'
import type { TreeFacts, TreeFile, TreeState } from './repository.ts'

function file(oid: string, mode = 0o644): TreeFile {
  return { kind: '100644', mode, oid, size: 1 }
}

function state(
  files: Readonly<Record<string, string | TreeFile>>,
  facts: Partial<TreeFacts> = {},
): TreeState {
  return {
    files: new Map(
      Object.entries(files).map(([path, each]) => [path, typeof each === 'string' ? file(each) : each]),
    ),
    facts: {
      empty: [],
      modes: [0o644, 0o755],
      odd: {},
      tooLarge: [],
      unreadable: [],
      special: [],
      exclude: '',
      ...facts,
    },
  }
}

function plan(target: TreeState, now: TreeState, more: Partial<PlanInput> = {}) {
  const none = new Set<string>()
  const input = { target, now, last: now, byUser: none, overwrite: none, wasIgnored: () => false, ...more }
  const { steps, kept, leaving, coming } = planOf(input)
  return {
    steps: steps.map(({ path, action }) => `${action} ${path}`),
    kept: kept.map(({ path, reason }) => `${path} ${reason}`),
    leaving,
    coming,
  }
}

test('what differs is restored, made again or deleted; what is equal is left alone', () => {
  const target = state({ same: '1', changed: '1', gone: '1', mode: file('1', 0o755) })
  assert.deepEqual(plan(target, state({ same: '1', changed: '2', mode: '1', made: '1' })), {
    steps: ['restore changed', 'recreate gone', 'delete made', 'restore mode'],
    kept: [],
    leaving: [],
    coming: [],
  })
})

test('a file that is not as the session left it is kept, changed or deleted, unless it is named', () => {
  const target = state({ a: '1', b: '1' })
  const last = state({ a: '2', b: '2' })
  const now = state({ a: '3' })
  assert.deepEqual(plan(target, now, { last }).kept, ['a changed-by-user', 'b changed-by-user'])
  assert.deepEqual(plan(target, now, { last, overwrite: new Set(['a']) }).steps, ['restore a'])
  assert.deepEqual(plan(target, last, { byUser: new Set(['a']) }).kept, ['a changed-by-user'])
})

test('what one of the states does not hold is unknown, and not deleted or made', () => {
  const target = state({ small: '1' }, { tooLarge: ['was large'], unreadable: ['shut'] })
  const now = state({ 'was large': '1', 'shut/f': '1', secret: '1' }, { tooLarge: ['small', 'new large'] })
  assert.deepEqual(plan(target, now, { wasIgnored: path => path === 'secret' }), {
    steps: [],
    kept: [
      'secret not-in-point',
      'shut/f not-in-point',
      'small not-in-point',
      'was large not-in-point',
      'new large not-in-point',
    ],
    leaving: [],
    coming: [],
  })
})

test('folders go with the last file in them where the session made them, the deepest first', () => {
  const target = state({ 'kept/a': '1' }, { empty: ['was empty'] })
  const now = state({ 'kept/a': '1', 'new/deep/f': '1' }, { empty: ['made/empty', 'of the user'] })
  const last = state({ 'kept/a': '1', 'new/deep/f': '1' }, { empty: ['made/empty'] })
  const { leaving, coming } = plan(target, now, { last })
  assert.deepEqual([leaving, coming], [['made/empty', 'new/deep', 'made', 'new'], ['was empty']])
})
