import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { SessionId } from '@dsh/protocol'
import { testStoreAgainstMemory } from '../../testing/contracts/differential.ts'
import { testStore } from '../../testing/contracts/store.ts'
import type { StorePlace } from '../../testing/contracts/store.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { decodeFrame, frameAt } from './format/frames.ts'
import { localFileSystem } from './local.ts'
import { JsonlMedium } from './medium.ts'

testStore('store-jsonl', place)
testStoreAgainstMemory('store-jsonl', place)

function place(t: TestContext): StorePlace {
  const root = mkdtempSync(join(tmpdir(), 'store-jsonl-'))
  t.after(() => rmSync(root, { recursive: true }))
  const host = { fs: localFileSystem, processes: createLocalProcesses(), now: () => Date.now() }
  const open = (): JsonlMedium => new JsonlMedium(join(root, 'sessions'), host)
  return {
    open,
    pid: process.pid,
    async damage(id, seq) {
      breakFrame(await pathOf(open(), id), seq)
    },
  }
}

async function pathOf(medium: JsonlMedium, id: SessionId): Promise<string> {
  const row = (await medium.list()).find(each => each.id === id)
  assert.ok(row !== undefined)
  return row.path
}

/** Breaks the frame that begins with the event, beyond what a flipped bit does. */
function breakFrame(path: string, seq: number): void {
  const bytes = readFileSync(path)
  for (let start = 0; start < bytes.length;) {
    const frame = frameAt(bytes, start)
    assert.ok(frame.kind === 'data')
    const text = decodeFrame(bytes.subarray(start, frame.end)).toString('utf8')
    if (text.startsWith(`{"firstSeq":${seq},`)) {
      writeFileSync(path, bytes.fill('broken', (start + frame.end) >> 1, frame.end))
      return
    }
    start = frame.end
  }
  assert.fail(`no frame begins with event ${seq}`)
}
