import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foregroundOf, isWaitingCall } from './foreground.ts'

test('a program waits for input that reads descriptor 0, or watches it and no other', () => {
  const arguments0 = '0x7f6b7fa8f000 0x20000 0x7f6b7fb22b60'
  assert.equal(isWaitingCall(`0 0x0 ${arguments0}`, 'x64'), true)
  assert.equal(isWaitingCall(`0 0x3 ${arguments0}`, 'x64'), false)
  assert.equal(isWaitingCall(`1 0x0 ${arguments0}`, 'x64'), false)
  assert.equal(isWaitingCall(`270 0x1 ${arguments0}`, 'x64'), true)
  assert.equal(isWaitingCall(`23 0x1 ${arguments0}`, 'x64'), true)
  assert.equal(isWaitingCall(`270 0x8 ${arguments0}`, 'x64'), false)
  assert.equal(isWaitingCall(`63 0x0 ${arguments0}`, 'arm64'), true)
  assert.equal(isWaitingCall(`72 0x1 ${arguments0}`, 'arm64'), true)
  assert.equal(isWaitingCall(`0 0x0 ${arguments0}`, 'arm64'), false)
})

test('where nothing can be told nothing is said to wait', () => {
  for (const line of ['', 'running', '-1 0x0', 'x'])
    for (const arch of ['x64', 'arm64']) assert.equal(isWaitingCall(line, arch), false)
  assert.equal(isWaitingCall('0 0x0', 'riscv64'), false)
  assert.equal(foregroundOf(2 ** 22 + 1), undefined)
})
