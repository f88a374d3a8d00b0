import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Io, StopSignal } from '../io.ts'
import { Stop } from './signals.ts'

function setup() {
  const listeners = new Set<(signal: StopSignal) => void>()
  const exits: number[] = []
  const io = {
    onSignal(listener: (signal: StopSignal) => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    exit: (code: number) => void exits.push(code),
  } as unknown as Io
  const send = (signal: StopSignal): void => {
    for (const listener of listeners) listener(signal)
  }
  return { stop: new Stop(io), send, exits, listeners }
}

test('the first signal aborts and gives the exit code, the second exits at once', () => {
  const { stop, send, exits } = setup()
  assert.deepEqual([stop.exitCode, stop.signal.aborted], [undefined, false])
  send('SIGTERM')
  assert.deepEqual([stop.exitCode, stop.signal.aborted, exits], [143, true, []])
  send('SIGINT')
  assert.deepEqual([stop.exitCode, exits], [143, [130]])
})

test('grace begins with the first signal, and ends with the watch', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { stop, send, listeners } = setup()
  let over = false
  const grace = stop.graceOf(5000).then(() => (over = true))
  t.mock.timers.tick(60_000)
  send('SIGHUP')
  await new Promise(resolve => setImmediate(resolve))
  t.mock.timers.tick(4999)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(over, false)
  t.mock.timers.tick(1)
  await grace
  stop.forget()
  assert.equal(listeners.size, 0)
})
