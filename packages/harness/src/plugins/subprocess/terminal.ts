import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { constants } from 'node:os'
import { Readable } from 'node:stream'
import type { IPty, spawn as spawnPty } from '@lydell/node-pty'
import { messageOf } from '../../kernel/index.ts'
import { foregroundOf } from './foreground.ts'
import { RunningProcess } from './running.ts'
import type { RunningSurroundings, StartedProcess } from './running.ts'
import type { Foreground, TerminalHandle, TerminalSignal, TerminalSize, TerminalSpec } from './service.ts'
import { TerminalInput } from './terminal-input.ts'
import { findTree, signalAll, trySignal } from './tree.ts'

interface NodePty {
  readonly spawn: typeof spawnPty
}

interface TerminalSurroundings extends RunningSurroundings {
  readonly env: Readonly<Record<string, string>>
}

/** How long what a terminal printed last may wait to be read after its program ended. */
const drainMs = 500

const noTerminalText = (reason: string): string =>
  `there is no terminal here, only pipes: ${reason}. Commands run; keys, sizes and programs that need a terminal do not work. To mend it, install the optional package @lydell/node-pty.`

/** What makes terminals, or the reason why nothing does. Loads it where it is not loaded yet. */
export async function loadTerminals(): Promise<NodePty | string> {
  try {
    return await import('@lydell/node-pty')
  } catch (error) {
    return firstLine(messageOf(error))
  }
}

/** A program on a terminal of its own, or on pipes where this machine can make none. `spec` names it by its whole path. */
export function startTerminal(
  terminals: NodePty | string,
  spec: TerminalSpec,
  around: TerminalSurroundings,
): RunningTerminal {
  const pty = typeof terminals === 'string' ? terminals : openPty(terminals, spec, around)
  if (typeof pty !== 'string')
    return new RunningTerminal(new PtyProcess(pty), new TerminalInput(pty), { spec, around })
  const [program, ...args] = spec.argv
  const child = spawn('/bin/sh', ['-c', 'exec "$0" "$@" 2>&1', program, ...args], {
    cwd: spec.cwd,
    detached: true,
    env: around.env,
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  })
  const line = { write: (text: string) => void child.stdin.write(text), resize: () => {}, discard: () => {} }
  return new RunningTerminal(child, line, { spec, around, notice: noTerminalText(pty) })
}

/** Or the reason why there is none. */
function openPty(
  terminals: NodePty,
  { argv: [program, ...args], cwd, rows, columns }: TerminalSpec,
  { env }: TerminalSurroundings,
): IPty | string {
  try {
    return terminals.spawn(program, args, {
      name: 'dumb',
      cwd,
      rows,
      cols: columns,
      env: { ...env },
      encoding: null,
    })
  } catch (error) {
    return firstLine(messageOf(error))
  }
}

/** A program on a pseudo terminal in the manner of a child process. */
class PtyProcess extends EventEmitter implements StartedProcess {
  readonly pid: number
  readonly stdin = null
  readonly stdout: Readable
  readonly stderr = null

  constructor(pty: IPty) {
    super()
    this.pid = pty.pid
    const output = new Readable({ read: () => pty.resume() })
    this.stdout = output
    // It throws what nobody else hears, where nobody could catch it.
    ;(pty as unknown as EventEmitter).on('error', () => {})
    pty.onData(bytes => {
      if (!output.push(bytes)) pty.pause()
    })
    pty.onExit(({ exitCode, signal = 0 }) => {
      const name = signalName(signal)
      this.emit('exit', name === undefined ? exitCode : null, name ?? null)
      output.once('end', () => this.emit('close'))
      output.push(null)
    })
  }
}

interface TerminalParts {
  readonly spec: TerminalSpec
  readonly around: TerminalSurroundings
  readonly notice?: string
}

interface Line {
  write(text: string): void
  resize(columns: number, rows: number): void
  discard(): void
}

/** One program on a terminal, with the tree of processes that grows from it. */
export class RunningTerminal extends RunningProcess implements TerminalHandle {
  readonly output: Readable
  readonly notice: string | undefined
  readonly #line: Line
  readonly #parts: TerminalParts
  #isHungUp = false

  constructor(started: StartedProcess & { readonly stdout: Readable }, line: Line, parts: TerminalParts) {
    super(started, { ...parts.spec, stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', drainMs }, parts.around)
    this.output = started.stdout
    this.notice = parts.notice
    this.#line = line
    this.#parts = parts
  }

  write(text: string): void {
    if (!this.hasExited) this.#line.write(text)
  }

  resize({ rows, columns }: TerminalSize): void {
    if (!this.hasExited) this.#line.resize(columns, rows)
  }

  inspectForeground(): Foreground | undefined {
    return this.hasExited || this.notice !== undefined ? undefined : foregroundOf(this.pid)
  }

  signalForeground(signal: TerminalSignal): number | undefined {
    if (this.hasExited) return undefined
    this.#line.discard()
    const group = this.inspectForeground()?.processGroupId ?? this.pid
    return trySignal(-group, signal, this.#parts.around.send) ? group : undefined
  }

  /** A shell with a terminal does not hear of SIGTERM: it is told that the terminal is gone. */
  override end(): Promise<void> {
    this.#line.discard()
    if (!this.#isHungUp && !this.hasExited) this.#hangUp()
    this.#isHungUp = true
    return super.end()
  }

  #hangUp(): void {
    const { spec, around } = this.#parts
    const tree = findTree([this], around.marker)
    const isSpared = spec.wraps === true && tree.some(({ group }) => group !== this.pid)
    const told = isSpared ? tree.filter(({ group }) => group !== this.pid) : tree
    if (tree.length === 0) trySignal(-this.pid, 'SIGHUP', around.send)
    signalAll(told, 'SIGHUP', around.send)
  }
}

function signalName(number: number): NodeJS.Signals | undefined {
  const found = Object.entries(constants.signals).find(([, value]) => value === number)
  return found?.[0] as NodeJS.Signals | undefined
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
