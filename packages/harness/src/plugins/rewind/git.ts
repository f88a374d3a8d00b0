import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { RewindError } from './errors.ts'

export interface GitSurroundings {
  /** Where `git` is looked for, as in PATH. */
  readonly path: string
  /** Milliseconds after which a git process is killed. */
  readonly timeLimitMs: number
}

export interface GitRun {
  /** Written to its standard input as fast as it reads. */
  readonly input?: string | Uint8Array | AsyncIterable<string | Uint8Array>
  readonly signal?: AbortSignal | undefined
}

/**
 * The program `git` in one private, bare repository.
 *
 * It sees that repository and nothing else: no work tree, no configuration of the user or the system, no hooks, no
 * attributes, no variables of this process. So nothing of a workspace, and nothing in it, can make it do anything.
 */
export class Git {
  readonly #folder: string
  readonly #around: GitSurroundings

  constructor(folder: string, around: GitSurroundings) {
    this.#folder = folder
    this.#around = around
  }

  /** What it prints. Rejects with GIT_FAILED, or with the signal's reason; either way the process is gone. */
  async run(args: readonly string[], { input, signal }: GitRun = {}): Promise<Buffer> {
    signal?.throwIfAborted()
    const child = spawn('git', [...args], {
      cwd: this.#folder,
      env: environment(this.#folder, this.#around.path),
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    })
    const kill = (): void => {
      child.kill('SIGKILL')
      // What it started may hold the pipes.
      child.stdout.destroy()
      child.stderr.destroy()
    }
    const timer = setTimeout(kill, this.#around.timeLimitMs)
    signal?.addEventListener('abort', kill, { once: true })
    try {
      const [output, complaint, code] = await Promise.all([
        collect(child.stdout),
        collect(child.stderr),
        exitOf(child),
        feed(child, input),
      ])
      if (code === 0) return output
      signal?.throwIfAborted()
      throw failureOf(args, complaint.toString('utf8'), code)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', kill)
      kill()
    }
  }
}

/** All that a process of the private repository is given. */
export function environment(folder: string, path: string): Record<string, string> {
  return {
    PATH: path,
    HOME: folder,
    GIT_DIR: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_DEFAULT_HASH: 'sha1',
    GIT_DEFAULT_REF_FORMAT: 'files',
    LC_ALL: 'C',
  }
}

async function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  try {
    const [code, killedBy] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    return code ?? killedBy
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const message = code === 'ENOENT' ? 'the program git is not there' : `git cannot be started: ${code}`
    throw new RewindError('GIT_FAILED', message, { cause })
  }
}

async function collect(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const parts: Buffer[] = []
  stream.on('data', (part: Buffer) => void parts.push(part))
  // Its exit code says whether this is all.
  await once(stream, 'close')
  return Buffer.concat(parts)
}

/** A process that ended early did not want the rest: its exit code tells why. Rejects with what `input` fails at. */
async function feed(child: ChildProcess, input: GitRun['input']): Promise<void> {
  const { stdin } = child
  if (stdin === null) return
  const gone = new Promise<void>(resolve => {
    stdin.on('error', () => resolve())
    child.once('close', () => resolve())
  })
  if (input === undefined || typeof input === 'string' || input instanceof Uint8Array) {
    stdin.end(input)
    return
  }
  try {
    for await (const part of input) {
      if (!stdin.writable) return
      if (!stdin.write(part)) await Promise.race([once(stdin, 'drain').catch(() => {}), gone])
    }
    stdin.end()
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function failureOf(args: readonly string[], complaint: string, code: number | string | null): RewindError {
  const [first = ''] = complaint.split('\n').filter(line => line.trim() !== '')
  const how = typeof code === 'string' ? `was ended by ${code}` : `ended with ${code}`
  return new RewindError('GIT_FAILED', `git ${args[0]} ${how}${first === '' ? '' : `: ${first}`}`)
}
