import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, userFact } from '../../../testing/index.ts'
import { headerOf } from '../../../testing/contracts/store-samples.ts'
import { createLocalProcesses } from '../../persistence/index.ts'
import type { FileSystem } from '../files/file-system.ts'
import { localFileSystem } from '../local.ts'
import { JsonlMedium } from '../medium.ts'

const id = SessionId('s1')
const frameEvents = 10

/** A log of a megabyte in a store that counts what it reads. */
async function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'store-jsonl-'))
  t.after(() => rmSync(root, { recursive: true }))
  const seen = { bytes: 0 }
  const fs: FileSystem = {
    ...localFileSystem,
    async open(path, use) {
      const file = await localFileSystem.open(path, use)
      return {
        stat: () => file.stat(),
        async read(position, length) {
          const bytes = await file.read(position, length)
          seen.bytes += bytes.length
          return bytes
        },
        write: bytes => file.write(bytes),
        truncate: size => file.truncate(size),
        sync: () => file.sync(),
        close: () => file.close(),
      }
    },
  }
  const medium = new JsonlMedium(root, { fs, processes: createLocalProcesses(), now: () => Date.now() })
  const events = logOf(
    ...Array.from({ length: 250 }, () => ['user/message', userFact(incompressible())] as const),
  )
  const writer = medium.begin(headerOf('s1'))
  for (let at = 0; at < 200; at += frameEvents) await writer.append(events.slice(at, at + frameEvents))
  const path = (await medium.list())[0]?.path ?? ''
  /** The events from `fromSeq` on, the gaps, and how much was read for them. */
  const stream = async (fromSeq?: number) => {
    seen.bytes = 0
    const batches = await Array.fromAsync(medium.stream(id, { fromSeq }))
    const gaps = batches.flatMap(({ gap }) => (gap === undefined ? [] : [gap.fromSeq]))
    return { shown: batches.flatMap(batch => batch.events), gaps, bytes: seen.bytes }
  }
  return { medium, writer, events, path, stream }
}

function incompressible(): string {
  return randomBytes(4500).toString('base64')
}

function seqsOf(events: readonly SessionEvent[]): readonly number[] {
  return events.map(({ seq }) => seq)
}

test('who has streamed a log reads on where it ended, however long it is', async t => {
  const { writer, events, path, stream } = await setup(t)
  const all = await stream()
  assert.deepEqual(all.shown, events.slice(0, 200))
  const size = readFileSync(path).length
  assert.ok(all.bytes >= size)
  for (let at = 200; at < 250; at += frameEvents) {
    await writer.append(events.slice(at, at + frameEvents))
    const more = await stream(at - 1)
    assert.deepEqual(more.shown, events.slice(at - 1, at + frameEvents))
    assert.ok(more.bytes < size / 2, `${more.bytes} of ${size} bytes were read`)
  }
  assert.deepEqual((await stream(3)).shown, events.slice(3))
  await writer.close()
})

test('a log that is another one is streamed from its beginning', async t => {
  const { medium, writer, events, stream } = await setup(t)
  await stream()
  await writer.close()
  await medium.remove(id)
  const others = events.map(event => ({ ...event, time: event.time + 1 }))
  const again = medium.begin(headerOf('s1'))
  await again.append(others.slice(0, 7))
  assert.deepEqual((await stream(2)).shown, others.slice(2, 7))
  await again.append(others.slice(7))
  assert.deepEqual((await stream(240)).shown, others.slice(240))
  await again.close()
})

test('damage behind the place where a stream goes on is told with what stands behind it', async t => {
  const { writer, events, path, stream } = await setup(t)
  await stream()
  const end = readFileSync(path).length
  for (let at = 200; at < 230; at += frameEvents) await writer.append(events.slice(at, at + frameEvents))
  await writer.close()
  const bytes = readFileSync(path)
  const place = end + ((bytes.length - end) >> 1)
  bytes[place] = (bytes[place] ?? 0) ^ 1
  writeFileSync(path, bytes)
  const { shown, gaps } = await stream(199)
  const seqs = seqsOf(shown)
  assert.deepEqual(gaps, [210])
  assert.deepEqual(seqs.slice(0, 11), seqsOf(events.slice(199, 210)))
  assert.deepEqual(seqs.slice(-10), seqsOf(events.slice(220, 230)))
  assert.deepEqual(
    shown,
    events.filter(({ seq }) => seqs.includes(seq)),
  )
  assert.ok(!seqs.includes(210))
  assert.deepEqual((await stream(199)).shown, shown)
})
