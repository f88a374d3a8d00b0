import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { skipWithoutBwrap } from './bwrap.ts'
import { escapes } from './sandbox-escapes.ts'
import { nobody } from './sandbox-place.ts'

const isRoot = process.getuid?.() === 0
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
const people = isRoot ? { root: ['env'], 'an ordinary user': asNobody } : { 'an ordinary user': ['env'] }

for (const [name, [program = '', ...args]] of Object.entries(people))
  test(
    `no way out of a sandbox that commands share leads anywhere: as ${name}`,
    { skip: skipWithoutBwrap(), timeout: 300_000 },
    async () => {
      const child = join(import.meta.dirname, 'sandbox-shells-escapes-child.ts')
      const { stdout } = await promisify(execFile)(
        program,
        [...args, process.execPath, '--conditions=dsh-source', child],
        { timeout: 280_000, killSignal: 'SIGKILL', env: { PATH: process.env['PATH'], HOME: '/nonexistent' } },
      )
      const came = stdout
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line) as { readonly name: string; readonly found: readonly string[] })
      assert.deepEqual(
        came,
        escapes.map(escape => ({ name: escape.name, found: [] })),
      )
    },
  )
