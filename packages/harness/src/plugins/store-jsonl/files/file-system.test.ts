import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { array, assert as check, asyncProperty, constantFrom, nat, oneof, record } from 'fast-check'
import { ModelFileSystem } from '../../../testing/index.ts'
import type { FileSystem, OpenFile } from './file-system.ts'
import { localFileSystem } from '../local.ts'

const names = ['a', 'b', 'd', 'd/a', 'd/e', 'd/e/b', 'a/x', 'missing/x'] as const
const name = constantFrom(...names)
const use = constantFrom('read', 'append', 'create')
const operation = oneof(
  record({
    call: constantFrom('mkdir', 'rmdir', 'unlink', 'read', 'stat', 'readdir', 'syncFolder'),
    path: name,
  }),
  record({ call: constantFrom('link', 'rename'), path: name, to: name }),
  record({ call: constantFrom('open'), path: name, use }),
  record({
    call: constantFrom('file.write', 'file.truncate', 'file.read', 'file.stat', 'file.sync', 'file.close'),
    size: nat(20),
  }),
)

interface Operation {
  readonly call: string
  readonly path?: string
  readonly to?: string
  readonly use?: 'read' | 'append' | 'create'
  readonly size?: number
}

/** Runs operations below `root`, and gives what each gave. */
class Run {
  readonly #fs: FileSystem
  readonly #root: string
  readonly #open: OpenFile[] = []
  readonly #identities = new Map<string, number>()

  constructor(fs: FileSystem, root: string) {
    this.#fs = fs
    this.#root = root
  }

  async do(operation: Operation): Promise<unknown> {
    try {
      return await (operation.call.startsWith('file.') ? this.#useFile(operation) : this.#usePath(operation))
    } catch (error) {
      return (error as { code?: string }).code ?? error
    }
  }

  async end(): Promise<void> {
    for (const file of this.#open) await file.close()
  }

  async #usePath({ call, path = '', to = '', use = 'read' }: Operation): Promise<unknown> {
    const at = join(this.#root, path)
    if (call === 'open') {
      this.#open.push(await this.#fs.open(at, use))
      return 'opened'
    }
    if (call === 'stat') return this.#told(await this.#fs.stat(at))
    if (call === 'read') return (await this.#fs.read(at)).toString('latin1')
    if (call === 'readdir') return (await this.#fs.readdir(at)).toSorted()
    if (call === 'link' || call === 'rename') return this.#fs[call](at, join(this.#root, to))
    return this.#fs[call as 'mkdir' | 'rmdir' | 'unlink' | 'syncFolder'](at)
  }

  async #useFile({ call, size = 0 }: Operation): Promise<unknown> {
    const file = this.#open.at(-1)
    if (file === undefined) return 'none is open'
    if (call === 'file.write') return file.write(Buffer.alloc(size, size + 60))
    if (call === 'file.truncate') return file.truncate(size)
    if (call === 'file.read') return (await file.read(size, 10)).toString('latin1')
    if (call === 'file.stat') return this.#told(await file.stat())
    if (call === 'file.sync') return file.sync()
    this.#open.pop()
    return file.close()
  }

  /** What can be compared: folders have a size of their own kind, and an identity is a name for a file. */
  #told({ kind, size, identity }: Awaited<ReturnType<FileSystem['stat']>>): unknown {
    const known = this.#identities.get(identity) ?? this.#identities.size
    this.#identities.set(identity, known)
    return kind === 'file' ? { kind, size, known } : { kind }
  }
}

test('whatever is done to it, the model answers as the real file system does', async () => {
  const root = mkdtempSync(join(tmpdir(), 'model-'))
  let count = 0
  const property = asyncProperty(array(operation, { maxLength: 40 }), async operations => {
    const folder = join(root, String(++count))
    await localFileSystem.mkdir(folder)
    const model = new ModelFileSystem()
    await model.mkdir('/r')
    // Syncs take long, and here they change nothing.
    const hasty: FileSystem = {
      ...localFileSystem,
      syncFolder: async path => void (await localFileSystem.readdir(path)),
      open: async (path, how) => ({ ...(await localFileSystem.open(path, how)), sync: async () => {} }),
    }
    const real = new Run(hasty, folder)
    const modelled = new Run(model, '/r')
    for (const each of operations as readonly Operation[]) {
      assert.deepEqual(await modelled.do(each), await real.do(each), JSON.stringify(each))
    }
    await real.end()
    await modelled.end()
  })
  try {
    await check(property, { numRuns: 300 })
  } finally {
    rmSync(root, { recursive: true })
  }
})
