import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { quoted, usageError } from '../errors.ts'

/** The real path of the folder to work in. Throws a usage error for one that cannot be read. */
export async function workFolder(cwd: string, given: string | undefined): Promise<string> {
  const path = resolve(cwd, given ?? '.')
  const fix = 'dsh run -C FOLDER "what to do"'
  try {
    const folder = await realpath(path)
    if (!(await stat(folder)).isDirectory()) throw usageError('NOT_A_FOLDER', `"${path}" is no folder`, fix)
    await access(folder, constants.R_OK | constants.X_OK)
    return folder
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR')
      throw usageError('NO_FOLDER', `there is no folder "${path}"`, fix)
    if (code === 'EACCES' || code === 'EPERM')
      throw usageError('UNREADABLE_FOLDER', `the folder "${path}" may not be read`, `ls -ld ${quoted(path)}`)
    throw error
  }
}
