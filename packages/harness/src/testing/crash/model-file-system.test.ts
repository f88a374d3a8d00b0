import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileSystem, OpenFile } from '../../plugins/store-jsonl/index.ts'
import { filesOf } from './disk.ts'
import { ModelFileSystem } from './model-file-system.ts'

async function write(fs: FileSystem, path: string, text: string): Promise<OpenFile> {
  const file = await fs.open(path, 'create')
  await file.write(Buffer.from(text))
  return file
}

function textsOf(fs: ModelFileSystem): Readonly<Record<string, string>> {
  return Object.fromEntries([...filesOf(fs.disk)].map(([path, bytes]) => [path, bytes.toString()]))
}

test('a disk in the trace stays as it was, whatever is done later', async () => {
  const fs = new ModelFileSystem()
  const file = await write(fs, '/a', 'one')
  const then = new ModelFileSystem(fs.disk)
  await file.write(Buffer.from(' two'))
  await fs.rename('/a', '/b')
  assert.deepEqual(textsOf(then), { '/a': 'one' })
  assert.deepEqual(textsOf(fs), { '/b': 'one two' })
  assert.deepEqual(
    fs.trace.map(({ call, path }) => `${call} ${path}`),
    ['create /a', 'write /a', 'write /a', 'rename /b'],
  )
})
