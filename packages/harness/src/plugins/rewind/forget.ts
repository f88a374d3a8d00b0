import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionId } from '@dsh/protocol'
import type { CheckedConfig } from './config.ts'
import { surroundings } from './env.ts'
import { Git } from './git.ts'
import { refOf } from './keeper.ts'

/** Lets go of all points of a session that was removed; the next packing of their store removes what is in them. */
export async function forgetPoints(config: CheckedConfig, id: SessionId): Promise<void> {
  const stores = join(config.home, 'restore')
  const ref = refOf(id)
  for (const name of await readdir(stores).catch(() => [])) {
    const folder = join(stores, name)
    if (await holdsRef(folder, ref))
      await new Git(folder, surroundings(config)).run(['update-ref', '-d', ref])
  }
}

/** A ref is a file of its own, or a line of those that were packed. */
async function holdsRef(folder: string, ref: string): Promise<boolean> {
  const texts = await Promise.all(
    [ref, 'packed-refs'].map(name => readFile(join(folder, name), 'utf8').catch(() => '')),
  )
  const [loose = '', packed = ''] = texts
  return loose !== '' || packed.includes(` ${ref}\n`)
}
