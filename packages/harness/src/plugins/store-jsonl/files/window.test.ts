import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { array, assert as check, asyncProperty, nat, tuple } from 'fast-check'
import { localFileSystem } from '../local.ts'
import type { ReadableFile } from './file-system.ts'
import { FileWindow } from './window.ts'

const size = 2_000_000
const content = Buffer.alloc(
  size,
  Uint8Array.from({ length: 9973 }, (_, at) => at % 251),
)

async function openContent(t: TestContext): Promise<ReadableFile> {
  const folder = mkdtempSync(join(tmpdir(), 'window-'))
  writeFileSync(join(folder, 'file'), content)
  const file = await localFileSystem.open(join(folder, 'file'), 'read')
  t.after(async () => {
    await file.close()
    rmSync(folder, { recursive: true })
  })
  return file
}

test('a file is read to its end in the same memory', async t => {
  const window = new FileWindow(await openContent(t), size)
  const memories = new Set<ArrayBufferLike>()
  for (let at = 0; at < size; at += 50_000) memories.add((await window.from(at, 60_000)).buffer)
  assert.equal(memories.size, 1)
})

test('wherever a window is moved, and whoever brings the memory, it has the bytes of the file', async t => {
  const file = await openContent(t)
  const deaf: ReadableFile = {
    stat: () => file.stat(),
    read: (at, length) => file.read(at, Math.min(length, 99_991)),
  }
  const places = array(tuple(nat(size), nat(700_000)), { minLength: 1, maxLength: 8 })
  await check(
    asyncProperty(places, async moves => {
      for (const given of [file, deaf]) {
        const window = new FileWindow(given, size)
        for (const [at, least] of moves) {
          const bytes = await window.from(at, least)
          assert.ok(bytes.length >= Math.min(least, size - at))
          assert.ok(bytes.equals(content.subarray(at, at + bytes.length)))
        }
      }
    }),
    { numRuns: 30 },
  )
})
