import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeConfined } from './judge.ts'
import type { RunnerFailureRule } from './service.ts'

const rule: RunnerFailureRule = {
  exitCodes: [1, 125],
  fatalSignatures: ['Runner: ', ' '],
  informationalLines: ['runner: an older kernel, some rules are left out'],
}

function judge(exitCode: number | null, stderr: string, signal: string | null = null) {
  const confined = { denialSignatures: ['Read-only file system'], runnerFailureRules: [rule] }
  return judgeConfined({ exitCode, signal, stderr, confined })
}

test('a line of the runner is its failure, and comes before a denial', () => {
  const line = 'runner: no namespace'
  assert.deepEqual(judge(1, `a: read-only file system\n${line}\nmore`), { kind: 'runner-failed', line })
  assert.deepEqual(judge(125, `RUNNER: x\r\n`), { kind: 'runner-failed', line: 'RUNNER: x' })
})

test('a refusal of the kernel is a denial', () => {
  assert.deepEqual(judge(2, 'touch: x: READ-ONLY FILE SYSTEM'), { kind: 'denied' })
})

test('success and a death by signal are never put down to the sandbox', () => {
  const stderr = 'runner: no namespace\nread-only file system'
  assert.equal(judge(0, stderr), undefined)
  assert.equal(judge(null, stderr, 'SIGKILL'), undefined)
  assert.equal(judge(1, stderr, 'SIGKILL'), undefined)
})

test('a notice of the runner and a command that finds nothing are no failure of the runner', () => {
  assert.equal(judge(1, 'Runner: an older kernel, some rules are left out\n'), undefined)
  assert.deepEqual(judge(1, 'runner: an older kernel, some rules are left out, and more'), {
    kind: 'runner-failed',
    line: 'runner: an older kernel, some rules are left out, and more',
  })
})

test('another exit code, a blank signature, and one that two lines make up count for nothing', () => {
  assert.equal(judge(2, 'runner: no namespace'), undefined)
  assert.equal(judge(1, 'some words\n'), undefined)
  assert.equal(judge(1, 'runner:\n no namespace'), undefined)
})
