import { join } from 'node:path'
import type { SessionId } from '@dsh/protocol'

const logName = 'log.jsonl.zst'
const lockName = 'lock'
const artifactsName = 'artifacts'

const longestSlug = 251

/** The folder of all sessions that were started in `cwd`. Two paths may share one; ids keep their sessions apart. */
export function projectFolder(cwd: string | undefined): string {
  if (cwd === undefined) return '_no-cwd'
  const slug = cwd
    .replaceAll(/[/\\:]+/g, '-')
    .replace(/^-+/, '')
    .replaceAll(/[^A-Za-z0-9._-]/g, escapeUnit)
  return `--${cutSlug(slug) || 'root'}--`
}

/** A folder name that no other id has. Throws RangeError for an id that cannot be a name. */
export function sessionFolder(id: SessionId): string {
  if (id === '') throw new RangeError('a session id must not be empty')
  if (id === '.' || id === '..') return id.replaceAll('.', escapeUnit)
  return id.replaceAll(/[^A-Za-z0-9._-]/g, escapeUnit)
}

/** The id that `name` is the folder of, or undefined for a name that is no such folder. */
export function idOfFolder(name: string): SessionId | undefined {
  const id = name.replaceAll(/~([0-9a-f]{4})/g, (_match, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  ) as SessionId
  return id !== '' && sessionFolder(id) === name ? id : undefined
}

export function pathsIn(folder: string): {
  readonly log: string
  readonly lock: string
  readonly artifacts: string
} {
  return { log: join(folder, logName), lock: join(folder, lockName), artifacts: join(folder, artifactsName) }
}

function escapeUnit(unit: string): string {
  return `~${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Never cuts inside an escape. */
function cutSlug(slug: string): string {
  const cut = slug.slice(0, longestSlug)
  return cut.length === slug.length ? slug : cut.replace(/~[0-9a-f]{0,3}$/, '')
}
