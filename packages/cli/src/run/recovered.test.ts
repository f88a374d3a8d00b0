import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ExaminedCall } from '@dsh/harness/plugins/recovery'
import { CallId } from '@dsh/protocol'
import { recoveredLines } from './recovered.ts'

const time = new Date(2026, 10, 30, 12, 58, 41).getTime()

function call(facts: Partial<ExaminedCall>): ExaminedCall {
  const base = { callId: CallId('c'), name: 'bash', arguments: '{"command":"npm test"}', seq: 1 }
  return { ...base, hasStarted: true, wasAsked: false, verdict: 'unknown', ...facts }
}

function linesFor(calls: readonly ExaminedCall[], lost: readonly string[] = []): string[] {
  return recoveredLines({ time, turns: [{ turn: 1, seq: 9, time, calls }], lost }, '/srv/app')
}

test('a person is told what became of each call of a run that was cut off', () => {
  const edit = { name: 'edit', arguments: '{"file_path":"/srv/app/src/a.ts"}' }
  assert.deepEqual(
    linesFor(
      [
        call({}),
        call({ ...edit, verdict: 'finished' }),
        call({ ...edit, verdict: 'changed nothing' }),
        call({ verdict: 'never started', wasAsked: true }),
        call({ arguments: 'no json\n', verdict: 'never started' }),
      ],
      ['task 1 ended'],
    ),
    [
      'recovered: the last run was cut off at 12:58:41; it left',
      '  bash npm test · outcome unknown: look before it is run again',
      '  edit src/a.ts · took effect',
      '  edit src/a.ts · did not take effect',
      '  bash npm test · never started (it was waiting for your answer)',
      '  bash  · never started',
      '  task 1 ended',
    ],
  )
})

test('one that left nothing is told in one line', () => {
  assert.deepEqual(linesFor([]), ['recovered: the last run was cut off at 12:58:41'])
})
