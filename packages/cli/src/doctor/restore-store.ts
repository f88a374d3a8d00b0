import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isFields, isText, parseJson } from '@dsh/harness/kernel'
import { counted, size } from '../text.ts'
import { note, ok } from './finding.ts'
import type { Findings, Place } from './finding.ts'

const bigBytes = 5_000_000_000
/** What git needs to take a folder for one of its own. */
const needed = ['HEAD', 'config', 'objects', 'refs']

/** Where the files of each step are kept, one repository a folder. */
export async function lookAtRestoreStore({ home }: Place): Promise<Findings> {
  const root = join(home, 'restore')
  const names = await namesIn(root)
  const found: Findings[number][] = []
  let packed = 0
  for (const name of names) {
    found.push(...(await lookAtOne(join(root, name))))
    packed += await packedBytes(join(root, name, 'objects', 'pack'))
  }
  const text = `files of ${counted(names.length, 'folder')}${packed === 0 ? '' : `, ${size(packed)} packed`}`
  if (packed > bigBytes)
    found.push(note('RESTORE_BIG', `${root} holds ${text}`, 'dsh session prune --older-than 90 --dry-run'))
  return found.length === 0 ? [ok(text)] : found
}

async function lookAtOne(folder: string): Promise<Findings> {
  const text = await readFile(join(folder, 'workspace.json'), 'utf8').catch(() => undefined)
  // A run may end before the first state is kept; the next one there goes on.
  if (text === undefined) return []
  const marker = parseJson(text)
  const workspace = isFields(marker) && isText(marker['workspace']) ? marker['workspace'] : undefined
  if (workspace === undefined)
    return [note('RESTORE_MARKER_BROKEN', `${folder} does not say whose files it keeps`)]
  const present = new Set(await namesIn(folder))
  const missing = needed.filter(name => !present.has(name))
  return missing.length === 0
    ? []
    : [
        note(
          'RESTORE_BROKEN',
          `the files kept of ${workspace} miss ${missing.join(', ')} in ${folder}; the next run there makes it again`,
        ),
      ]
}

async function packedBytes(folder: string): Promise<number> {
  const sizes = await Promise.all(
    (await namesIn(folder)).map(name =>
      stat(join(folder, name)).then(
        found => found.size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}

/** None where there is no folder. */
async function namesIn(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
}
