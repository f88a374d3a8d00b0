import {
  appendFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { isAlive } from './env.ts'
import type { Machine } from './env.ts'
import { removePlaceholders } from './placeholders.ts'
import type { PlaceholderRecord } from './placeholders.ts'

const fileName = /^(?:dsh-)?(\d+)-[0-9a-f]{12}\.placeholders$/

/** Notes in a file beside a temporary folder what stands in workspaces, for a program that comes after a crash. */
export class RecordFile implements PlaceholderRecord {
  readonly #path: string

  /** `tempFolder` is named by this process; the folder it lies in has to be there. */
  constructor(tempFolder: string) {
    this.#path = `${tempFolder}.placeholders`
  }

  note(path: string): void {
    appendFileSync(this.#path, `${path}\0`, { mode: 0o600 })
  }

  rest(paths: readonly string[]): void {
    if (paths.length === 0) rmSync(this.#path, { force: true })
    else writeFileSync(this.#path, paths.map(path => `${path}\0`).join(''), { mode: 0o600 })
  }
}

/** Takes away what programs of this user that ended without it left in workspaces, as their files in `folder` tell. */
export function sweepPlaceholders(folder: string, { uid }: Pick<Machine, 'uid'>): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const pid = fileName.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const file = join(folder, name)
    const stats = lstatSync(file, { throwIfNoEntry: false })
    if (stats?.isFile() !== true || (uid !== undefined && stats.uid !== uid)) continue
    const paths = readFileSync(file, 'utf8').split('\0').slice(0, -1)
    if (removePlaceholders(paths).length === 0) rmSync(file, { force: true })
  }
}
