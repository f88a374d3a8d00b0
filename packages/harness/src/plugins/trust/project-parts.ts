import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { TrustPart } from './service.ts'

/**
 * What a part of a project would do once it is loaded: bring plugins and their settings, run commands at certain moments,
 * start servers, or tell the model how to work. Instructions run nothing.
 */
export type PartKind = 'plugins' | 'hooks' | 'servers' | 'instructions'

export interface ProjectPart extends TrustPart {
  readonly kind: PartKind
}

export interface ProjectParts {
  readonly parts: readonly ProjectPart[]
  /** Links, and what is too large or cannot be read: never loaded. */
  readonly refused: readonly string[]
}

export interface ProjectOptions {
  /** The program's own folder, which no project brings along. */
  readonly home?: string
  /** Nothing else is read. */
  readonly only?: PartKind
}

const ownFolder = '.dsh'
/** Files and folders at the top of a project, by what they are. */
const places: readonly (readonly [path: string, kind: PartKind])[] = [
  [ownFolder, 'plugins'],
  ['.claude/settings.json', 'hooks'],
  ['.claude/settings.local.json', 'hooks'],
  ['.claude/hooks', 'hooks'],
  ['.codex/hooks.json', 'hooks'],
  ['.codex/config.toml', 'hooks'],
  ['.codex/hooks', 'hooks'],
  ['.mcp.json', 'servers'],
  ['.lsp.json', 'servers'],
  ['AGENTS.md', 'instructions'],
  ['CLAUDE.md', 'instructions'],
]
const mostFiles = 1000
const largestFile = 4 * 1024 * 1024

/** Whether the folder brings anything of its own; looks at names alone. One that may not be searched brings nothing. */
export function hasProjectParts(folder: string, options: ProjectOptions = {}): boolean {
  return placesIn(folder, options).some(([path]) => isThere(join(folder, path)))
}

function placesIn(folder: string, { home }: ProjectOptions): typeof places {
  const isOwn = home !== undefined && realPath(join(folder, ownFolder)) === realPath(home)
  return isOwn ? places.filter(([path]) => path !== ownFolder) : places
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** What the project in `folder` brings, with the content of each file. No link is followed. */
export function projectParts(folder: string, options: ProjectOptions = {}): ProjectParts {
  const parts: ProjectPart[] = []
  const refused: string[] = []
  for (const [place, kind] of placesIn(folder, options)) {
    const waiting = [place]
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const isWanted = options.only === undefined || options.only === kindOf(path, kind)
      // Of what is in the program's folder, some is of another kind.
      if (!isWanted && path !== ownFolder) continue
      const found = readPart(folder, path)
      if (found === 'none') continue
      if (found === 'refused' || parts.length >= mostFiles) refused.push(path)
      else if (typeof found === 'string') parts.push({ path, sha256: found, kind: kindOf(path, kind) })
      else waiting.push(...found.map(name => `${path}/${name}`))
    }
  }
  return { parts, refused }
}

/** The digest of a file, the names in a folder, or why there is neither. */
function readPart(folder: string, path: string): string | readonly string[] | 'none' | 'refused' {
  const whole = join(folder, path)
  try {
    const stats = lstatSync(whole, { throwIfNoEntry: false })
    if (stats === undefined) return 'none'
    if (hasLink(folder, path)) return 'refused'
    if (stats.isDirectory()) return readdirSync(whole).toSorted()
    if (!stats.isFile() || stats.size > largestFile) return 'refused'
    return createHash('sha256').update(readFileSync(whole)).digest('hex')
  } catch {
    return 'refused'
  }
}

/** Whether it is a link, or a link is on the way to it. */
function hasLink(folder: string, path: string): boolean {
  const parts = path.split('/')
  return parts.some((_, index) => {
    const stats = lstatSync(join(folder, ...parts.slice(0, index + 1)), { throwIfNoEntry: false })
    return stats?.isSymbolicLink() === true
  })
}

function kindOf(path: string, kind: PartKind): PartKind {
  return path.startsWith('.dsh/hooks') ? 'hooks' : kind
}
