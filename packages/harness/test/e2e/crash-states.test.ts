import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultyFileSystem } from '../../src/testing/index.ts'
import type { FileSystem } from '../../src/plugins/store-jsonl/index.ts'
import { enumerate } from '../crash/enumerate.ts'
import { loopScenario } from '../crash/loop.ts'
import { modelParts } from '../crash/parts.ts'
import { jsonlScenarios } from '../crash/scenarios.ts'
import { failPower } from '../crash/sqlite-power.ts'

// `npm run test:crash` tries a hundred times as many states.
const seed = process.env['DSH_CRASH_SEED'] ?? '1'

for (const part of modelParts) {
  test(`nothing is lost by crashes: ${part.name}`, async () => {
    const { failures, states, recovered, lost } = await part.run({ seed, scale: 'short' })
    assert.deepEqual(failures, [], `DSH_CRASH_SEED=${seed}`)
    assert.equal(lost, 0)
    assert.equal(recovered, states)
    assert.ok(states > 40, `${states} states`)
  })
}

/** A disk that says it has written a file, or a folder, and has not. */
function lying(about: 'file' | 'folder'): (fs: FileSystem) => FileSystem {
  return fs => {
    const files = faultyFileSystem(fs)
    if (about === 'folder') return { ...files, syncFolder: async path => void (await fs.stat(path)) }
    return { ...files, open: async (path, use) => ({ ...(await fs.open(path, use)), sync: async () => {} }) }
  }
}

for (const about of ['file', 'folder'] as const) {
  test(`the gate tells what is lost where the sync of a ${about} is left out`, async () => {
    const batches = jsonlScenarios.find(({ name }) => name === 'batch after batch')
    assert.ok(batches !== undefined)
    const row = await enumerate(batches, { seed, limit: 60, again: 0, wrap: lying(about) })
    assert.ok(row.lost > 20, `${row.lost} lost`)
    assert.ok(row.recovered < row.states)
    assert.match(row.failures.join('\n'), /the power failed behind call \d+, .*\[acknowledged\] s1: /)
    assert.doesNotMatch(row.failures.join('\n'), /^killed/m, 'a killed program loses nothing by that')
  })
}

test('the gate tells of requests that the log cannot account for where they wait for no barrier', async () => {
  const row = await enumerate(loopScenario('llm/stream'), { seed, limit: 60, again: 0 })
  assert.match(
    row.failures.join('\n'),
    /\[witnessed\] s1: a request was sent behind event \d+, and \d+ are stored/,
  )
})

test('the gate tells of tools that ran unknown to the log where their bodies wait for no barrier', async () => {
  const row = await enumerate(loopScenario('tools/execute'), { seed, limit: 60, again: 0 })
  assert.match(row.failures.join('\n'), /\[witnessed\] s1: call c\d has run, and the log does not say so/)
})

test('the gate tells of answers that are lost where the end of a turn waits for no disk', async () => {
  const row = await enumerate(loopScenario('turn/end'), { seed, limit: 60, again: 0 })
  assert.ok(row.lost > 0)
  assert.match(row.failures.join('\n'), /\[acknowledged\] s1: \d+ of \d+ acknowledged events are there/)
  assert.doesNotMatch(row.failures.join('\n'), /\[witnessed\]/, 'the other barriers stand')
})

test('the gate tells what is lost where a disk forgets what a database has synced', async () => {
  const row = await failPower({ seed, states: 30, lie: 20_000 })
  assert.ok(row.lost > 20, `${row.lost} lost`)
  assert.match(row.failures.join('\n'), /\[acknowledged\] s1: \d+ of \d+ acknowledged events are there/)
})
