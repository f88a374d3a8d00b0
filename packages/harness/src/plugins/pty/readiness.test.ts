import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from './readiness.ts'
import type { ReadinessFacts } from './readiness.ts'
import type { PtyWait } from './service.ts'

const limits = { exactProbeAfterMs: 150, pollIntervalMs: 50, idleSilenceMs: 3000 }

const running: ReadinessFacts = {
  form: 'type',
  isSubmitted: true,
  isPatient: false,
  hasExited: false,
  isAtPrompt: false,
  isShellInFront: undefined,
  inputWait: undefined,
  waitBefore: undefined,
  lastWait: undefined,
  sinceSendMs: 1000,
  silentMs: 1000,
  timeoutMs: 30_000,
}

const at = (facts: Partial<ReadinessFacts>): PtyWait | undefined => settle({ ...running, ...facts }, limits)

test('a prompt ends what was typed after a moment of silence, and what is run at once', () => {
  assert.equal(at({ isAtPrompt: true, silentMs: 49 }), undefined)
  assert.equal(at({ isAtPrompt: true, silentMs: 50 }), 'stdin_read')
  assert.equal(at({ isAtPrompt: true, silentMs: 0, form: 'run' }), 'stdin_read')
})

test('a prompt counts for nothing while another program has the terminal', () => {
  assert.equal(at({ isAtPrompt: true, isShellInFront: false }), undefined)
  assert.equal(at({ isAtPrompt: true, isShellInFront: false, silentMs: 3000 }), 'inferred_idle')
  assert.equal(at({ isAtPrompt: true, isShellInFront: true }), 'stdin_read')
})

test('a wait for input counts when it is new, is there twice, and nothing is printed', () => {
  const waiting = { inputWait: '7.1.2', lastWait: '7.1.2', silentMs: 150 }
  assert.equal(at(waiting), 'stdin_read')
  assert.equal(at({ ...waiting, form: 'run' }), 'stdin_read')
  assert.equal(at({ ...waiting, silentMs: 149 }), undefined)
  assert.equal(at({ ...waiting, waitBefore: '7.1.2' }), undefined)
  assert.equal(at({ ...waiting, waitBefore: '7.1.1' }), 'stdin_read')
  assert.equal(at({ ...waiting, lastWait: undefined }), undefined)
  assert.equal(at({ ...waiting, lastWait: '7.1.1' }), undefined)
})

test('silence is only taken for an end of what was typed, and never of a command or a patient send', () => {
  assert.equal(at({ silentMs: 2999 }), undefined)
  assert.equal(at({ silentMs: 3000 }), 'inferred_idle')
  assert.equal(at({ silentMs: 29_000, sinceSendMs: 29_000, form: 'run' }), undefined)
  assert.equal(at({ silentMs: 29_000, sinceSendMs: 29_000, isPatient: true }), undefined)
  assert.equal(at({ silentMs: 299, isSubmitted: false }), undefined)
  assert.equal(at({ silentMs: 300, isSubmitted: false }), 'inferred_idle')
})

test('time is up for all, and an end outranks it', () => {
  for (const form of ['type', 'run'] as const) {
    assert.equal(at({ form, sinceSendMs: 30_000 }), 'timeout')
    assert.equal(at({ form, sinceSendMs: 30_000, isAtPrompt: true }), 'stdin_read')
    assert.equal(at({ form, sinceSendMs: 30_000, hasExited: true, isAtPrompt: true }), 'session_exit')
  }
})
