import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { projectParts } from '../trust/index.ts'
import { projectFiles } from './project-files.ts'

test('each hook file that a project may bring is asked about as hooks', t => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-hook-files-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const labels = projectFiles.map(([label]) => label)
  for (const label of labels) {
    mkdirSync(dirname(join(folder, label)), { recursive: true })
    writeFileSync(join(folder, label), '{}')
  }
  const hooks = projectParts(folder).parts.filter(({ kind }) => kind === 'hooks')
  assert.deepEqual(hooks.map(({ path }) => path).toSorted(), labels.toSorted())
})
