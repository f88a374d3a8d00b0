import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import type { Environment } from './config.ts'
import type { SandboxExecutionPolicy } from './service.ts'

/** A folder of a person in which tools keep what they could make or fetch again. */
interface ToolFolder {
  /** Says where it is. */
  readonly variable: string
  /** Where it is else, below the person's home. */
  readonly usual: string
  /** What is in it is seen in its place, but for these names, which tools write to. Absent: nothing of it is seen. */
  readonly renewed?: readonly string[]
}

/** Needed by tools that fetch nothing. */
const always: readonly ToolFolder[] = [
  {
    variable: 'XDG_CACHE_HOME',
    usual: '.cache',
    renewed: 'ccache composer deno go-build golangci-lint node pip pypoetry uv yarn zig'.split(' '),
  },
  {
    variable: 'GRADLE_USER_HOME',
    usual: '.gradle',
    renewed: '.tmp caches daemon kotlin-profile native notifications workers'.split(' '),
  },
]

/** Needed by those that fetch; till then what a person has there is of more use than an empty folder. */
const forFetching: readonly ToolFolder[] = [
  { variable: 'npm_config_cache', usual: '.npm' },
  { variable: 'PNPM_HOME', usual: '.local/share/pnpm' },
  { variable: 'YARN_GLOBAL_FOLDER', usual: '.yarn/berry' },
  { variable: 'BUN_INSTALL_CACHE_DIR', usual: '.bun/install/cache' },
  { variable: 'GOMODCACHE', usual: 'go/pkg/mod' },
  { variable: 'NUGET_PACKAGES', usual: '.nuget/packages' },
  {
    variable: 'CARGO_HOME',
    usual: '.cargo',
    renewed: 'registry git .package-cache .package-cache-mutate .global-cache'.split(' '),
  },
]

/** Tools would try for minutes to reach what cannot be reached. */
export const noTries: Readonly<Record<string, string>> = {
  BUNDLE_RETRY: '0',
  CARGO_NET_RETRY: '0',
  // Without a single one pip does not say why it found nothing.
  PIP_RETRIES: '1',
  UV_HTTP_RETRIES: '0',
  YARN_HTTP_RETRY: '0',
  npm_config_fetch_retries: '0',
}

export interface ToolPlace {
  /** Of the session. */
  readonly tempFolder: string
  /** Of the person. */
  readonly userHome: string
  readonly env: Environment
}

/**
 * Makes what `toolVariables` speaks of, as far as tools would not. Only for a folder that no confined process has had yet:
 * from then on it is theirs, with links that lead anywhere.
 */
export function makeToolFolders(place: ToolPlace): void {
  for (const folder of [...always, ...forFetching]) {
    const { renewed } = folder
    if (renewed === undefined) continue
    const [from, to] = [ownPlace(folder, place), newPlace(folder, place)]
    mkdirSync(to, { recursive: true })
    for (const name of namesIn(from))
      if (!renewed.includes(name)) symlinkSync(join(from, name), join(to, name))
  }
}

/**
 * Variables by which tools keep what they make or fetch in the temporary folder of the session, for the places that they
 * cannot write to. What a confined process writes there is seen by those of its session, and run by nobody else.
 */
export function toolVariables(
  { network, writableRoots }: Pick<SandboxExecutionPolicy, 'network' | 'writableRoots'>,
  place: ToolPlace,
  { hasFetched }: { readonly hasFetched: boolean },
): Readonly<Record<string, string>> {
  const folders = hasFetched ? [...always, ...forFetching] : always
  const closed = folders.filter(
    folder => !writableRoots.some(root => isWithin(root, ownPlace(folder, place))),
  )
  const moved = closed.map(folder => [folder.variable, newPlace(folder, place)] as const)
  const { tempFolder, userHome } = place
  return {
    ...(network ? {} : noTries),
    // Beside a cache that is moved npm keeps them there.
    ...(!hasFetched && { npm_config_logs_dir: join(tempFolder, '.cache/npm-logs') }),
    GRADLE_RO_DEP_CACHE: join(userHome, '.gradle/caches'),
    ...Object.fromEntries(moved),
  }
}

function ownPlace({ variable, usual }: ToolFolder, { env, userHome }: ToolPlace): string {
  return env[variable] || join(userHome, usual)
}

function newPlace({ usual }: ToolFolder, { tempFolder }: ToolPlace): string {
  return join(tempFolder, '.cache', usual.replace(/^\./, '').replaceAll('/', '-'))
}

/** What cannot be listed is of no use to a confined process either. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
