import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DetachedRuns } from './detached-runs.ts'

test('the end tells all runs to stop and waits for them, also for those that come meanwhile', async () => {
  const runs = new DetachedRuns()
  const ended: string[] = []
  const untilAborted = async (name: string, signal: AbortSignal): Promise<void> => {
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
    if (name === 'first') runs.add(async late => await untilAborted('late', late))
    await Promise.resolve()
    ended.push(name)
  }
  runs.add(async signal => await untilAborted('first', signal))
  runs.add(async signal => await untilAborted('second', signal))
  await runs.end()
  assert.deepEqual(ended.toSorted(), ['first', 'late', 'second'])
  await runs.settled()
})
