import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TurnEndReason } from '@dsh/protocol'
import type { RunFacts } from '@dsh/harness/plugins/replay'
import { replayLines } from './replay-text.ts'

function facts(end: TurnEndReason): RunFacts {
  return { turns: 1, requests: 0, steps: [], calls: {}, ms: 0, usages: [], answer: '', end }
}

test('only of a replay that came to its end is said that every call was the recorded one', () => {
  const recorded = facts({ kind: 'completed' })
  const said = (end: TurnEndReason): boolean =>
    replayLines({ recorded, replayed: facts(end), end }, { color: false }).includes(
      'every call was the recorded one',
    )
  assert.deepEqual([said({ kind: 'completed' }), said({ kind: 'max-tokens' })], [true, false])
})
