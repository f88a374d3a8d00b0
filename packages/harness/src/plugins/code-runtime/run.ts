import { randomBytes } from 'node:crypto'
import type { JsonValue } from '@dsh/protocol'
import { readThrown } from '../../core/tools/index.ts'
import { adopt, toJsonText } from '../../kernel/index.ts'
import type { ConfinedArgv } from '../sandbox/index.ts'
import type { ProcessExit, Subprocess, SubprocessHandle } from '../subprocess/index.ts'
import { describeExit } from './exit.ts'
import { readFrame } from './frames.ts'
import type { Frame } from './frames.ts'
import type { Argv } from './language.ts'
import { Lines } from './lines.ts'
import type { Bindings } from './namespaces.ts'
import { OutputBudget } from './output.ts'
import type { CodeFailureKind, CodeResult } from './service.ts'

export interface RunLimits {
  readonly cpuSeconds: number
  readonly maxWallMs: number
  readonly maxOutputBytes: number
  readonly memoryMb: number
}

export interface ProgramProcess {
  readonly argv: Argv
  readonly cwd: string
  /** Absent where nothing confines it. */
  readonly confined: ConfinedArgv | undefined
  readonly source: string
  readonly bindings: Bindings
  readonly hasBigIntegers: boolean
  readonly limits: RunLimits
  readonly signal: AbortSignal
}

type Outcome = Pick<CodeResult, 'value' | 'error' | 'unread'>

const graceMs = 250
const drainMs = 1000
const keptErrorBytes = 64 * 1024
/** What a frame holds besides what counts as output. */
const frameOverhead = 4096
/** Calls that wait for their answer, and calls in all: no program means so many. */
const maxOpenCalls = 10_000
const maxCalls = 20_000

/**
 * One program in one process. Whatever comes first decides: its end, a limit, the caller's signal. Resolves when the
 * process is gone and all it printed is read.
 */
export class ProgramRun {
  readonly #subprocess: Subprocess
  readonly #spec: ProgramProcess
  readonly #mark = `\u001e${randomBytes(12).toString('base64url')}`
  readonly #output: OutputBudget
  readonly #lines = new Lines(line => this.#readLine(line))
  readonly #ids = new Set<number>()
  readonly #settled = Promise.withResolvers<Outcome>()
  #handle: SubprocessHandle | undefined
  #openCalls = 0
  #isOver = false
  #hasBooted = false

  constructor(subprocess: Subprocess, spec: ProgramProcess) {
    this.#subprocess = subprocess
    this.#spec = spec
    this.#output = new OutputBudget(spec.limits.maxOutputBytes)
  }

  async run(): Promise<CodeResult> {
    const { signal, limits } = this.#spec
    if (signal.aborted) return { logs: [], error: aborted }
    const handle = this.#start()
    const onAbort = (): void => this.#fail(aborted)
    const timer = setTimeout(
      () => this.#failWith('timeout', `the program ran for ${limits.maxWallMs / 1000} s`),
      limits.maxWallMs,
    )
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const outcome = await this.#settled.promise
      await this.#gone(handle)
      return this.#result(outcome, handle)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  #start(): SubprocessHandle {
    const { argv, cwd, source, bindings } = this.#spec
    const stderr = { headBytes: keptErrorBytes, tailBytes: keptErrorBytes }
    const nothing = Object.fromEntries(Object.keys(this.#subprocess.env).map(name => [name, undefined]))
    const spec = { argv, cwd, stderr, graceMs, drainMs, env: nothing }
    const handle = this.#subprocess.spawn({ ...spec, stdin: 'pipe', stdout: 'pipe' })
    this.#handle = handle
    handle.stdout?.on('data', (bytes: Uint8Array) => this.#read(bytes))
    handle.stdout?.on('error', () => {})
    handle.done.then(
      exit => this.#exited(exit, handle),
      (error: unknown) => this.#failWith('worker-exit', readThrown(error).message),
    )
    this.#tell({ type: 'boot', mark: this.#mark, namespaces: bindings.shapes as unknown as JsonValue })
    this.#tell({ type: 'run', source })
    return handle
  }

  #tell(frame: JsonValue): void {
    this.#handle?.stdin?.write(`${toJsonText(frame)}\n`)
  }

  /** A program that is done ends by itself; nobody waits long for it, and nothing of it stays. */
  async #gone(handle: SubprocessHandle): Promise<void> {
    const late = setTimeout(() => handle.terminate(), graceMs)
    await handle.done.catch(() => {})
    clearTimeout(late)
    if (!handle.hasGroup()) return
    handle.terminate()
    await handle.waitForExit(AbortSignal.timeout(graceMs + drainMs))
  }

  #result(outcome: Outcome, { collected }: SubprocessHandle): CodeResult {
    this.#lines.end()
    const native = collected.stderr?.readFrom(0).text ?? ''
    if (native !== '' && outcome.error?.kind !== 'worker-exit') this.#output.log(withoutLastEnd(native))
    const { logs } = this.#output
    const counted = outcome.error === undefined ? outcome.value : outcome.error.message
    if (counted !== undefined && !this.#output.takes(toJsonText(counted)))
      return { logs, error: this.#overflow() }
    return this.#output.isFull ? { logs, error: this.#overflow() } : { ...outcome, logs }
  }

  #read(bytes: Uint8Array): void {
    const { maxOutputBytes } = this.#spec.limits
    this.#lines.push(bytes)
    // Written in ASCII alone, a text takes three times what it counts for at most.
    if (this.#lines.held > maxOutputBytes * 3 + frameOverhead || this.#output.isFull)
      this.#fail(this.#overflow())
  }

  /** What stands before the mark was printed past the console. */
  #readLine(line: string): void {
    if (this.#output.isFull) return
    const at = line.indexOf(this.#mark)
    const native = at === -1 ? line : line.substring(0, at)
    if (at !== 0) this.#output.log(native)
    if (at === -1) return
    const frame = readFrame(line.substring(at + this.#mark.length), this.#spec)
    if (frame !== undefined && !this.#isOver) this.#take(frame)
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case 'boot-ack':
        this.#hasBooted = true
        return
      case 'log':
        this.#output.log(frame.text)
        return
      case 'call':
        void this.#call(frame)
        return
      case 'done': {
        const { type: _, unread, ...outcome } = frame
        this.#settle(unread.length === 0 ? outcome : { ...outcome, unread })
      }
    }
  }

  /** Only the first call of a number counts. */
  async #call({ id, global, name, args }: Extract<Frame, { type: 'call' }>): Promise<void> {
    if (this.#ids.has(id)) return
    this.#ids.add(id)
    if (this.#openCalls >= maxOpenCalls)
      return this.#failWith(
        'output-limit',
        `the program had ${maxOpenCalls} calls open; wait for some of them`,
      )
    if (this.#ids.size > maxCalls)
      return this.#failWith('output-limit', `the program made more than ${maxCalls} calls`)
    this.#openCalls += 1
    try {
      const bound = this.#spec.bindings.find(global, name)
      if (bound === undefined) throw new Error(`there is no ${global}.${name}`)
      if (args === undefined) throw new Error('JSON does not keep these arguments')
      const value = adopt(await bound(args), 'the answer')
      this.#reply({ type: 'reply', id, ok: true, value })
    } catch (error) {
      this.#reply({ type: 'reply', id, ok: false, message: readThrown(error).message })
    } finally {
      this.#openCalls -= 1
    }
  }

  /** What a program does not read is kept here, so it has to end somewhere. */
  #reply(frame: JsonValue): void {
    if (this.#isOver) return
    const { maxOutputBytes } = this.#spec.limits
    if ((this.#handle?.stdin?.writableLength ?? 0) > maxOutputBytes)
      this.#failWith('output-limit', `the program left more than ${maxOutputBytes} bytes of answers unread`)
    else this.#tell(frame)
  }

  #exited(exit: ProcessExit, handle: SubprocessHandle): void {
    const { limits, confined } = this.#spec
    const stderr = handle.collected.stderr?.readFrom(0).text ?? ''
    this.#fail(describeExit(exit, { stderr, limits, confined, hasBooted: this.#hasBooted }))
  }

  #overflow(): NonNullable<CodeResult['error']> {
    const { maxOutputBytes } = this.#spec.limits
    return { kind: 'output-limit', message: `the program gave more than ${maxOutputBytes} bytes of output` }
  }

  #failWith(kind: CodeFailureKind, message: string): void {
    this.#fail({ kind, message })
  }

  #fail(error: NonNullable<CodeResult['error']>): void {
    this.#settle({ error })
    this.#handle?.terminate()
  }

  #settle(outcome: Outcome): void {
    this.#isOver = true
    this.#settled.resolve(outcome)
  }
}

const aborted = { kind: 'abort', message: 'the program was cancelled' } as const

function withoutLastEnd(text: string): string {
  return text.replace(/\n$/, '')
}
