import type { Context } from '../../kernel/index.ts'
import type { SubprocessHandle } from '../subprocess/index.ts'
import { SearchError } from './errors.ts'

export interface RipgrepRun {
  readonly args: readonly string[]
  /** The folder that relative paths of the arguments start from. */
  readonly cwd: string
  readonly signal: AbortSignal
  /** Sees the output as it comes; the answer 'stop' ends the search. */
  readonly onOutput: (bytes: Buffer) => 'go on' | 'stop'
}

interface RipgrepEnd {
  readonly isStopped: boolean
  /** Files and folders that could not be read; the search went on without them. */
  readonly unreadable: number
}

/** Runs one search. Rejects with a SearchError. */
export type Ripgrep = (run: RipgrepRun) => Promise<RipgrepEnd>

const graceMs = 3000
/** Output that was printed is read to its end, however long that takes. */
const drainMs = 60_000
const keptStderr = { headBytes: 64 * 1024, tailBytes: 0 }
const maxExcerptLines = 12

/** No configuration of the user or the machine, ignore files followed also outside of git, version control hidden. */
const constantArgs: readonly string[] = [
  '--no-config',
  '--color=never',
  '--hidden',
  '--no-ignore-global',
  '--no-require-git',
  ...['.git', '.svn', '.hg', '.bzr', '.jj', '.sl'].map(name => `--glob=!${name}`),
]

/** Searches with the program that `locate` finds when the first search asks for it. */
export function createRipgrep(ctx: Context, locate: () => Promise<string> = packagedRipgrep): Ripgrep {
  let located: Promise<string> | undefined
  const program = async (): Promise<string> => {
    located ??= locate()
    try {
      return await located
    } catch (cause) {
      located = undefined
      throw new SearchError('SEARCH_FAILED', `there is no ripgrep to search with: ${messageOf(cause)}`, {
        cause,
      })
    }
  }
  return async ({ args, cwd, signal, onOutput }) => {
    const path = await program()
    if (signal.aborted) throw aborted(signal)
    const handle = ctx.subprocess.spawn({
      argv: [path, ...constantArgs, ...args],
      cwd,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: keptStderr,
      graceMs,
      drainMs,
      signal,
    })
    return await watch(handle, signal, onOutput)
  }
}

async function packagedRipgrep(): Promise<string> {
  return (await import('@vscode/ripgrep')).rgPath
}

async function watch(
  handle: SubprocessHandle,
  signal: AbortSignal,
  onOutput: RipgrepRun['onOutput'],
): Promise<RipgrepEnd> {
  let isStopped = false
  handle.stdout?.on('data', (bytes: Buffer) => {
    if (isStopped || onOutput(bytes) === 'go on') return
    isStopped = true
    handle.terminate()
  })
  const exit = await handle.done.catch((cause: unknown) => {
    throw new SearchError('SEARCH_FAILED', `cannot start ripgrep: ${messageOf(cause)}`, { cause })
  })
  if (signal.aborted) throw aborted(signal)
  if (isStopped) return { isStopped, unreadable: 0 }
  if (exit.signal !== null) throw new SearchError('SEARCH_FAILED', `ripgrep was killed by ${exit.signal}`)
  if (exit.exitCode === 0 || exit.exitCode === 1) return { isStopped, unreadable: 0 }
  return { isStopped, unreadable: unreadableIn(wholeLines(handle), exit.exitCode) }
}

/** What the program said, up to the last line that was kept whole. */
function wholeLines({ collected: { stderr } }: SubprocessHandle): string {
  if (stderr === undefined) return ''
  const { text, nextOffset } = stderr.readFrom(0)
  return nextOffset === stderr.totalBytes ? text : text.replace(/[^\n]*$/, '')
}

/** How many paths `stderr` says could not be read. Throws where it says anything else. */
function unreadableIn(stderr: string, exitCode: number | null): number {
  const lines = stderr.split('\n').filter(line => line.trim() !== '')
  if (lines.length > 0 && lines.every(line => /^rg: .*\(os error \d+\)$/.test(line))) return lines.length
  const excerpt = lines
    .slice(0, maxExcerptLines)
    .map(line => line.replace(/^rg: /, ''))
    .join('\n')
  if (
    /regex parse error|is not allowed in a regex|regex could not be compiled|exceeds size limit/.test(stderr)
  )
    throw new SearchError('SEARCH_INVALID_PATTERN', excerpt)
  if (stderr.includes('error parsing glob')) throw new SearchError('SEARCH_INVALID_PATTERN', excerpt)
  const what = excerpt === '' ? 'and said nothing' : `with: ${excerpt}`
  throw new SearchError('SEARCH_FAILED', `ripgrep ended with exit code ${exitCode} ${what}`)
}

function aborted(signal: AbortSignal): SearchError {
  return new SearchError('SEARCH_ABORTED', 'the search was cancelled', { cause: signal.reason })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
