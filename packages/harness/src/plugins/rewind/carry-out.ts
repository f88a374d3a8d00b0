import { lstat, mkdir, open, rename, rmdir, symlink, unlink } from 'node:fs/promises'
import { Buffer } from 'node:buffer'
import { readContent } from './import.ts'
import { batches } from './batches.ts'
import type { FileContent } from './import.ts'
import type { KeptReason } from './events.ts'
import { callPath, foldersOf, joinRaw, parentOf } from './paths.ts'
import type { RawPath } from './paths.ts'
import type { FileStep, Kept, Plan } from './plan.ts'
import type { TreeFile } from './repository.ts'
import { lookAt, lookOf } from './walk.ts'

export interface CarriedOut {
  /** Done now or, where the plan was begun before, then. */
  readonly done: readonly FileStep[]
  readonly kept: readonly Kept[]
}

export interface Surroundings {
  readonly root: RawPath
  /** In the names of files that are being written. */
  readonly nonce: string
  /** Contents of the files, in the order asked for. */
  blobs(oids: readonly string[]): Promise<readonly Uint8Array[]>
}

/**
 * Does what the plan says. Each path is looked at once more right before: what is neither as the plan found it nor as
 * the plan wants it stays, and is named. So a plan that was broken off is completed by carrying it out again.
 *
 * Files are replaced whole, by a rename. Nothing is written or removed through a link.
 */
export async function carryOut(plan: Plan, around: Surroundings): Promise<CarriedOut> {
  const done: FileStep[] = []
  const kept: Kept[] = []
  const note = (step: FileStep, reason: KeptReason | undefined): void => {
    if (reason === undefined) done.push(step)
    else kept.push({ path: step.path, reason })
  }
  const { root } = around
  for (const step of plan.steps) if (step.to === undefined) note(step, await remove(root, step))
  for (const folder of plan.leaving)
    if (isPlainPlace(root, folder)) await rmdir(callPath(root, folder)).catch(() => {})
  const writes = plan.steps.flatMap(step => (step.to === undefined ? [] : [{ step, to: step.to }]))
  let at = 0
  for (const some of batches(writes, ({ to }) => to.size)) {
    const contents = await around.blobs(some.map(({ to }) => to.oid))
    for (const [index, { step, to }] of some.entries())
      note(
        step,
        await write(around, step, { to, bytes: contents[index] ?? Buffer.alloc(0), index: at + index }),
      )
    at += some.length
  }
  for (const folder of plan.coming) await makeFolders(root, folder).catch(() => {})
  return { done, kept }
}

async function remove(root: RawPath, step: FileStep): Promise<KeptReason | undefined> {
  const { path } = step
  const state = stateOf(root, step)
  if (state === 'wanted') return undefined
  if (state !== 'expected') return state
  try {
    await unlink(callPath(root, path))
    return undefined
  } catch {
    return 'failed'
  }
}

interface Wanted {
  readonly to: TreeFile
  readonly bytes: Uint8Array
  /** Of all that is written. */
  readonly index: number
}

async function write(
  { root, nonce }: Surroundings,
  step: FileStep,
  { to, bytes, index }: Wanted,
): Promise<KeptReason | undefined> {
  const { path } = step
  const state = stateOf(root, step)
  if (state === 'wanted') return undefined
  if (state !== 'expected') return state
  const temporary = joinRaw(parentOf(path), `.dsh-rewind-${nonce}-${index}`)
  try {
    await makeFolders(root, parentOf(path))
    // An attempt that was broken off may have left it.
    await unlink(callPath(root, temporary)).catch(() => {})
    await stage(callPath(root, temporary), to, bytes)
    // The user may have saved it meanwhile.
    const late = stateOf(root, step)
    if (late !== 'expected') {
      await unlink(callPath(root, temporary))
      return late === 'wanted' ? undefined : late
    }
    await rename(callPath(root, temporary), callPath(root, path))
    return undefined
  } catch (error) {
    await unlink(callPath(root, temporary)).catch(() => {})
    const { code } = error as NodeJS.ErrnoException
    return code === 'EISDIR' || code === 'ENOTDIR' || code === 'EEXIST' ? 'in-the-way' : 'failed'
  }
}

async function stage(path: string | Buffer, to: TreeFile, bytes: Uint8Array): Promise<void> {
  if (to.kind === '120000') return await symlink(Buffer.from(bytes), path)
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    await file.chmod(to.mode)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** How a path is now, against what its step wants and expects. */
function stateOf(root: RawPath, { path, from, to }: FileStep): 'wanted' | 'expected' | KeptReason {
  if (!isPlainPlace(root, path))
    return to === undefined && lookAt(root, path) === undefined ? 'wanted' : 'in-the-way'
  const stats = lookAt(root, path)
  if (stats === undefined)
    return to === undefined ? 'wanted' : from === undefined ? 'expected' : 'changed-by-user'
  if (stats.isDirectory()) return 'in-the-way'
  const content = readContent(root, path, { seen: lookOf(stats), maxBytes: Number.MAX_SAFE_INTEGER })
  if (typeof content === 'string') return 'in-the-way'
  if (isFile(content, to)) return 'wanted'
  return isFile(content, from) ? 'expected' : 'changed-by-user'
}

function isFile({ kind, oid, look }: FileContent, file: TreeFile | undefined): boolean {
  if (file === undefined || kind !== file.kind || oid !== file.oid) return false
  return kind === '120000' || (look.mode & 0o7777) === file.mode
}

/** No folder on the way is a link, or anything else than a folder; those that are not there will be made. */
function isPlainPlace(root: RawPath, path: RawPath): boolean {
  return foldersOf(path).every(folder => {
    const stats = lookAt(root, folder)
    return stats === undefined || stats.isDirectory()
  })
}

async function makeFolders(root: RawPath, folder: RawPath): Promise<void> {
  if (folder === '') return
  for (const each of [...foldersOf(folder), folder]) {
    try {
      await mkdir(callPath(root, each))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EEXIST' || !(await lstat(callPath(root, each))).isDirectory()) throw error
    }
  }
}
