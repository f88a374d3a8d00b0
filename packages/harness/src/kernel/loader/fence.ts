import { realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { LoaderError } from './errors.ts'

/** Files of a folder that others may change: what the folder loads of itself is what a person admitted. */
export interface Fence {
  /** Absolute, links resolved. */
  readonly folder: string
  /** The same, of each admitted file. */
  readonly admitted: ReadonlySet<string>
}

interface Loading {
  readonly specifier: string
  /** URLs of who asks and of what is found, links resolved. */
  readonly parent: string
  readonly url: string
}

/** Throws where a file of the folder would load another that nobody admitted, by its place or by its name. */
export function assertAdmitted({ specifier, parent, url }: Loading, fence: Fence | undefined): void {
  if (fence === undefined || !isBelow(fence.folder, parent) || !url.startsWith('file:')) return
  const { folder, admitted } = fence
  const file = fileURLToPath(url)
  const isNamedByPlace = /^(?:\.|\/|file:)/.test(specifier)
  if (admitted.has(file) || !(isNamedByPlace || isBelow(folder, url))) return
  throw notAdmitted(file)
}

/** The same for what a composition file of the folder includes. */
export function assertIncluded(file: string, included: Iterable<string>, fence: Fence): void {
  if (!realpathSync(file).startsWith(fence.folder + path.sep)) return
  const foreign = [...included].map(each => realpathSync(each)).find(each => !fence.admitted.has(each))
  if (foreign !== undefined) throw notAdmitted(foreign)
}

function notAdmitted(file: string): LoaderError {
  return new LoaderError('NOT_TRUSTED', `${file} is not among the files that were trusted`)
}

function isBelow(folder: string, url: string): boolean {
  return url.startsWith('file:') && fileURLToPath(url).startsWith(folder + path.sep)
}
