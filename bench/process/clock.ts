import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { medianOf } from '../measure.ts'

export interface Program {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Where its output goes. */
  readonly log: string
}

export interface Cost {
  /** Epoch ms. */
  readonly start: number
  readonly wallMs: number
  /** Of the program and all it waited for. */
  readonly cpuMs: number
  /** The most that its largest process held at once; NaN where there is no /proc. */
  readonly peakMb: number
  readonly code: number | null
}

const now = (): number => performance.timeOrigin + performance.now()
const sampleMs = 20
const limitMs = 180_000
const timed = 'TIMEFORMAT="%3U %3S"; time "$@" >"$0" 2>&1'

/** Runs a program under a shell that counts its CPU. */
export async function costOf({ argv, env, cwd, log }: Program): Promise<Cost> {
  const start = now()
  const shell = spawn('bash', ['-c', timed, log, ...argv], {
    cwd,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  let times = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => (times += text))
  let peakMb = Number.NaN
  const sampler = setInterval(() => {
    const held = peakBelow(shell.pid ?? 0)
    if (!(held <= peakMb)) peakMb = held
  }, sampleMs)
  const limit = setTimeout(() => process.kill(-(shell.pid ?? 0), 'SIGKILL'), limitMs)
  const [code] = (await once(shell, 'close')) as [number | null]
  const wallMs = now() - start
  clearInterval(sampler)
  clearTimeout(limit)
  const [user = Number.NaN, system = Number.NaN] = times.trim().split(/\s+/).map(Number)
  return { start, wallMs, cpuMs: (user + system) * 1000, peakMb, code }
}

/** The kernel keeps each process's peak, so that a late sample is as good as a constant watch. */
function peakBelow(pid: number): number {
  const peaks = childrenOf(pid).map(child => Math.max(peakOf(child), peakBelow(child)))
  return Math.max(Number.NEGATIVE_INFINITY, ...peaks)
}

function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

function peakOf(pid: number): number {
  const kb = Number(/^VmHWM:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? Number.NaN)
  return Number.isNaN(kb) ? Number.NEGATIVE_INFINITY : kb / 1024
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export interface Floors {
  /** A bare Node process, measured like a program. */
  readonly nodeMs: number
  /** `spawn('bash', ['-c', 'true'])` from this process, until it is closed. */
  readonly shellMs: number
}

/** What the machine itself takes, now. */
export async function floors(program: Program): Promise<Floors> {
  const node: number[] = []
  const shell: number[] = []
  for (let run = 0; run < 7; run++) {
    const bare = { ...program, argv: [process.execPath, '-e', '0'] }
    node.push((await costOf(bare)).wallMs)
  }
  for (let run = 0; run < 30; run++) {
    const start = performance.now()
    const child = spawn('bash', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    await once(child, 'close')
    shell.push(performance.now() - start)
  }
  return { nodeMs: medianOf(node), shellMs: medianOf(shell) }
}

/** The end of a log, for a run that failed. */
export async function tailOf(log: string): Promise<string> {
  const lines = (await readFile(log, 'utf8')).trimEnd().split('\n')
  return lines.slice(-3).join('\n')
}
