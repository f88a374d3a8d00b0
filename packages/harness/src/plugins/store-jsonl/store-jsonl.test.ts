import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testStore } from '../../testing/contracts/store.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { localFileSystem } from './local.ts'
import { JsonlMedium } from './medium.ts'

testStore('store-jsonl', t => {
  const root = mkdtempSync(join(tmpdir(), 'store-jsonl-'))
  t.after(() => rmSync(root, { recursive: true }))
  const host = { fs: localFileSystem, processes: createLocalProcesses(), now: () => Date.now() }
  return { open: () => new JsonlMedium(join(root, 'sessions'), host), pid: process.pid }
})
