import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { mock, test } from 'node:test'
import { loadSqlite } from './index.ts'

test('only the warning that SQLite is experimental is kept back, and only while it is loaded', t => {
  const { emitWarning } = process
  const told: unknown[] = []
  process.emitWarning = ((warning: unknown) => told.push(warning)) as typeof emitWarning
  t.after(() => {
    process.emitWarning = emitWarning
  })
  const own = process.emitWarning
  const load = mock.method(process, 'getBuiltinModule', () => {
    process.emitWarning(
      'SQLite is an experimental feature and might change at any time',
      'ExperimentalWarning',
    )
    process.emitWarning('another')
    return { DatabaseSync }
  })
  t.after(() => load.mock.restore())
  assert.equal(loadSqlite().DatabaseSync, DatabaseSync)
  assert.deepEqual(told, ['another'])
  assert.equal(process.emitWarning, own)
  load.mock.mockImplementation(() => undefined as never)
  assert.throws(() => loadSqlite(), { code: 'STORE_FAILED', message: 'this Node has no SQLite' })
})
