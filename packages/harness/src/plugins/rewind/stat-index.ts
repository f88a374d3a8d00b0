import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isFields, isText, replaceFile } from '../../kernel/index.ts'
import type { RawPath } from './paths.ts'
import type { TreeFacts, TreeFile } from './repository.ts'
import type { Look } from './walk.ts'

/** What the last state holds of a path, and how the file looked when it was read. */
export interface Known {
  readonly look: Look
  readonly kind: TreeFile['kind']
  readonly oid: string
  /** It may have changed since without looking any different. */
  readonly fresh: boolean
}

/** The last state that was kept of a workspace. */
export interface Base {
  readonly commit: string
  readonly tree: string
  readonly facts: TreeFacts
  readonly known: Map<RawPath, Known>
}

const version = 1
const file = 'index.json'
const never = -1

/** A shortcut for the next program; where it is missing or wrong, files are read again. */
export async function readStatIndex(folder: string): Promise<Base | undefined> {
  try {
    const read: unknown = JSON.parse(await readFile(join(folder, file), 'utf8'))
    if (!isFields(read) || read['version'] !== version || !Array.isArray(read['rows'])) return undefined
    const { commit, tree, facts, rows } = read
    if (!isText(commit) || !isText(tree) || !isFields(facts)) return undefined
    const known = new Map<RawPath, Known>()
    for (const [path, kind, oid, mode, size, mtimeMs, ctimeMs, ino] of rows as readonly Row[])
      known.set(path, { kind, oid, look: { mode, size, mtimeMs, ctimeMs, ino }, fresh: mtimeMs === never })
    return { commit, tree, facts: facts as unknown as TreeFacts, known }
  } catch {
    return undefined
  }
}

type Row = [
  RawPath,
  Known['kind'],
  oid: string,
  mode: number,
  size: number,
  mtimeMs: number,
  ctimeMs: number,
  ino: number,
]

export async function writeStatIndex(folder: string, base: Base): Promise<void> {
  const rows: Row[] = []
  for (const [path, { kind, oid, look, fresh }] of base.known) {
    const { mode, size, mtimeMs, ctimeMs, ino } = look
    rows.push([path, kind, oid, mode, size, fresh ? never : mtimeMs, ctimeMs, ino])
  }
  const { commit, tree, facts } = base
  const text = JSON.stringify({ version, commit, tree, facts, rows })
  await replaceFile(join(folder, file), text, { mode: 0o600, isCache: true })
}

export async function dropStatIndex(folder: string): Promise<void> {
  await rm(join(folder, file), { force: true })
}
