import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processParts, soakParts } from '../crash/parts.ts'

const seed = process.env['DSH_CRASH_SEED'] ?? '1'

// Rivals and random kills have tests of their own beside these.
const short = processParts.filter(({ name }) => /points/.test(name))

for (const part of [...short, ...soakParts.slice(0, 1)]) {
  test(`nothing is lost where programs are killed: ${part.name}`, async () => {
    const { failures, states, recovered, lost } = await part.run({ seed, scale: 'short' })
    assert.deepEqual(failures, [], `DSH_CRASH_SEED=${seed}`)
    assert.deepEqual([recovered, lost], [states, 0])
    assert.ok(states > 1)
  })
}
