import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { isAlive, parseStat, processTable, readEntry } from './process-table.ts'

const line = (name: string, state: string): string =>
  `41 (${name}) ${state} 7 40 39 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 987654 0 0`

test('a name may hold blanks and parentheses', () => {
  assert.deepEqual(parseStat(line('a) S 1 (b', 'S')), {
    pid: 41,
    startTime: '987654',
    command: 'a) S 1 (b',
    parent: 7,
    group: 40,
    session: 39,
  })
})

test('what is dead, or no such line, is nobody', () => {
  assert.equal(parseStat(line('x', 'Z')), undefined)
  assert.equal(parseStat(line('x', 'X')), undefined)
  assert.equal(parseStat(''), undefined)
  assert.equal(parseStat('41 (x) S 7'), undefined)
})

test(
  'this process is found as itself, not as one that started at another time',
  { skip: !existsSync('/proc/self/stat') },
  () => {
    const self = readEntry(process.pid)
    assert.ok(self !== undefined && isAlive(self))
    assert.equal(isAlive({ ...self, startTime: '1' }), false)
    assert.ok(processTable().some(entry => entry.pid === process.pid && entry.parent === process.ppid))
  },
)
