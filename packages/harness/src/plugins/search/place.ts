import type { ToolRunContext } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { FsError, missingText } from '../fs/index.ts'
import type { FsTarget } from '../fs/index.ts'
import type {} from '../sandbox/index.ts'

/** Where a search looks, and how what it finds is called. */
export interface SearchPlace {
  /** The session's folder, links resolved: where the search program runs. */
  readonly cwd: string
  /** What the search program is told to look through: relative below `cwd`, else absolute. */
  readonly argument: string
  readonly type: 'file' | 'directory'
  /** As people and models know it. */
  readonly shown: string
  /** A path that the search program printed, or undefined where nobody may see it. */
  find(printed: string): FoundPath | undefined
}

export interface FoundPath {
  /** Absolute, where it was when the place was looked at. */
  readonly real: string
  /** Below the place; '' for the place itself. */
  readonly below: string
  /** Relative to the session's folder where it lies in there. */
  readonly shown: string
}

const versionControl = /(^|\/)\.(git|svn|hg|bzr|jj|sl)(\/|$)/

/**
 * The place that a tool's arguments name, once it is sure that it may be read. Throws an FsError where it is missing;
 * undefined where only the folders at the end of `base`, which a pattern begins with, are.
 */
export async function findPlace(
  ctx: Context,
  { path, base = '' }: { readonly path: string | undefined; readonly base?: string },
  exec: ToolRunContext,
): Promise<SearchPlace | undefined> {
  const { signal } = exec
  const home = await ctx.fs.resolve('.', { signal, ...cwdOf(exec) })
  const named = path === undefined ? home : await ctx.fs.resolve(path, { signal, cwd: home.displayPath })
  const root =
    base === '' || (await isFile(ctx, named, exec))
      ? named
      : await ctx.fs.resolve(base, { signal, cwd: named.displayPath })
  await ctx.waterfall('fs/read-intent', root, exec, async () => {})
  const info = await ctx.fs.stat(root, signal)
  if (info === undefined && root !== named) return undefined
  if (info === undefined)
    throw new FsError('FS_NOT_FOUND', await missingText(ctx.fs, root, { what: 'folder', signal }))
  if (info.type === 'other')
    throw new FsError('FS_NOT_REGULAR_FILE', `${root.displayPath} is neither a file nor a folder`)
  const isHidden = await hiding(ctx, ctx.fs.processPath(root), exec)
  return placeOf({ fs: ctx.fs, home, root, type: info.type, isHidden })
}

/** Whether the search is of one file, which nothing lies below. Fails where the place itself is missing. */
async function isFile(ctx: Context, named: FsTarget, { signal }: ToolRunContext): Promise<boolean> {
  const info = await ctx.fs.stat(named, signal)
  if (info !== undefined) return info.type === 'file'
  throw new FsError('FS_NOT_FOUND', await missingText(ctx.fs, named, { what: 'folder', signal }))
}

function cwdOf({ agent }: ToolRunContext): { readonly cwd?: string } {
  const cwd = agent?.session.header.cwd
  return cwd === undefined ? {} : { cwd }
}

/** Says of each real path below `root` whether the policy of the call hides it. */
async function hiding(
  ctx: Context,
  root: string,
  { agent, token }: ToolRunContext,
): Promise<(path: string) => boolean> {
  const policies = ctx.get('sandboxPolicy')
  const policy = await policies?.resolve({ session: agent?.session, token })
  if (policies === undefined || policy === undefined) return () => false
  const concerns = (path: string): boolean =>
    path === root || below(path, root) !== undefined || below(root, path) !== undefined
  // Most folders have nothing hidden in or above them, and then no path needs a look.
  if (![...policy.unreadablePaths, '/proc'].some(concerns)) return () => false
  return path => policies.readRefusal(policy, path) !== undefined
}

interface PlaceParts {
  readonly fs: Context['fs']
  readonly home: FsTarget
  readonly root: FsTarget
  readonly type: SearchPlace['type']
  readonly isHidden: (path: string) => boolean
}

function placeOf({ fs, home, root, type, isHidden }: PlaceParts): SearchPlace {
  const [cwd, real] = [fs.processPath(home), fs.processPath(root)]
  const argument = real === cwd ? '.' : (below(cwd, real) ?? real)
  const shown =
    root.displayPath === home.displayPath
      ? '.'
      : (below(home.displayPath, root.displayPath) ?? root.displayPath)
  const printedArgument = argument === '.' || argument.startsWith('/') ? argument : `./${argument}`
  return {
    cwd,
    argument: printedArgument,
    type,
    shown,
    find(printed) {
      const rest = printed === printedArgument ? '' : (below(printedArgument, printed) ?? printed)
      const absolute = rest === '' ? real : join(real, rest)
      if (versionControl.test(absolute) || isHidden(absolute)) return undefined
      if (rest === '') return { real, below: rest, shown }
      return { real: absolute, below: rest, shown: shown === '.' ? rest : join(shown, rest) }
    },
  }
}

/** The rest of `path` behind `folder`, or undefined where it does not lie below it. */
function below(folder: string, path: string): string | undefined {
  const start = folder.endsWith('/') ? folder : `${folder}/`
  return path.startsWith(start) ? path.substring(start.length) : undefined
}

function join(folder: string, rest: string): string {
  return folder.endsWith('/') ? folder + rest : `${folder}/${rest}`
}
