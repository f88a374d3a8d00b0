import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** The folder that a run would work in. */
export async function lookAtFolder({ cwd }: Place): Promise<Findings> {
  if (cwd === undefined) return [problem('NO_FOLDER', 'the current folder is gone', 'cd')]
  const mayWrite = await access(cwd, constants.W_OK).then(
    () => true,
    () => false,
  )
  return mayWrite
    ? [ok(cwd)]
    : [note('FOLDER_READ_ONLY', `${cwd} may not be written: files can only be read`)]
}
