import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isFields, parseJson } from '@dsh/harness/kernel'
import { counted } from '../text.ts'
import { note, ok } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** So many are read: enough to see whether something writes wrong ones. */
const readFiles = 50

/** Values that were kept beside the logs: what is wrong with one costs the time to work it out anew. */
export async function lookAtProjections({ home }: Place): Promise<Findings> {
  const folder = join(home, 'cache', 'projections')
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
  const kept = names.filter(name => name.endsWith('.json'))
  const read = kept.filter((_, at) => at < readFiles)
  const broken: string[] = []
  for (const name of read) if (!(await isWhole(join(folder, name)))) broken.push(join(folder, name))
  if (broken.length === 0)
    return [ok(`${counted(kept.length, 'session')} with values that follow from the log`)]
  return broken.map(path => note('PROJECTION_BROKEN', `${path} is passed over, and made anew when asked for`))
}

async function isWhole(path: string): Promise<boolean> {
  return await readFile(path, 'utf8').then(
    text => isFields(parseJson(text)),
    () => false,
  )
}
