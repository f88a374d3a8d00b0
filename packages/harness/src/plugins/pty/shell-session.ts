import { randomBytes } from 'node:crypto'
import { cutText } from '../../core/tools/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import type { Foreground, TerminalHandle, TerminalSignal, TerminalSize } from '../subprocess/index.ts'
import { PtyError } from './errors.ts'
import { keyBytes } from './keys.ts'
import { MarkerStream } from './markers.ts'
import type { Piece } from './markers.ts'
import { settle } from './readiness.ts'
import type { ReadinessLimits } from './readiness.ts'
import { Scrollback } from './scrollback.ts'
import type { ScrollbackLimits } from './scrollback.ts'
import { Send } from './send.ts'
import type {
  PtyBackendSession,
  PtyPage,
  PtySend,
  PtySendOperation,
  PtySendResult,
  PtyStatus,
  PtyWait,
} from './service.ts'
import { runLine, setUpLine } from './shell-script.ts'
import type { ShellDialect } from './shell-script.ts'

export interface ShellLimits extends ReadinessLimits {
  readonly scrollback: ScrollbackLimits
  readonly timeoutMs: number
  readonly startMs: number
  readonly disposeGraceMs: number
}

export interface ShellFacts {
  readonly dialect: ShellDialect
  readonly mode: SandboxMode | undefined
  readonly notices: readonly string[]
}

/** As many bytes are read in a tenth of a second; what prints more waits, as it would for a slow terminal. */
const windowBytes = 2 ** 20
const windowMs = 100
const longestPollMs = 250
const longestStartText = 4096
/** How long what was interrupted is waited for. */
const interruptMs = 1500
/** How long ending may take after its grace is over. */
const patienceMs = 2000

/** One shell on a terminal, which says by marks that nobody can guess when it is at its prompt. */
export class ShellSession implements PtyBackendSession {
  readonly mode: SandboxMode | undefined
  readonly notices: readonly string[]
  readonly #handle: TerminalHandle
  readonly #limits: ShellLimits
  readonly #nonce = randomBytes(16).toString('hex')
  readonly #stream = new MarkerStream(this.#nonce)
  readonly #scrollback: Scrollback
  readonly #ended: Promise<void>
  #dialect: ShellDialect
  #status: PtyStatus = { state: 'running' }
  #exitCode: number | undefined
  #active: Send | undefined
  #poll: NodeJS.Timeout | undefined
  /** The shell itself, as it was when it was last at its prompt. */
  #shell: Pick<Foreground, 'processGroupId' | 'commandLine'> | undefined
  /** What comes is the echo of what no person typed. */
  #isMuted = true
  #startText = ''
  #runs = 0
  #windowEnd = 0
  #windowBytes = 0

  constructor(handle: TerminalHandle, { dialect, mode, notices }: ShellFacts, limits: ShellLimits) {
    this.#handle = handle
    this.#dialect = dialect
    this.mode = mode
    this.notices = handle.notice === undefined ? notices : [...notices, handle.notice]
    this.#limits = limits
    this.#scrollback = new Scrollback(limits.scrollback)
    handle.output.on('data', (bytes: Uint8Array) => this.#onData(bytes))
    this.#ended = handle.done.then(
      ({ exitCode, signal }) => this.#onEnd({ state: 'exited', exitCode, signal }),
      () => this.#onEnd({ state: 'exited', exitCode: null, signal: null }),
    )
  }

  get pid(): number {
    return this.#handle.pid
  }

  get status(): PtyStatus {
    return this.#status
  }

  /** Resolves when the shell is at its first prompt, or not to be: with what it printed until then. */
  async ready(): Promise<string> {
    const send = this.#begin({ text: '', submit: false, form: 'run', timeoutMs: this.#limits.startMs })
    send.isBegun = true
    this.#setUp()
    await send.result
    return this.#startText
  }

  get isReady(): boolean {
    return this.#exitCode !== undefined
  }

  startSend(request: PtySend): PtySendOperation {
    const keys = (request.keys ?? []).map(keyBytes).join('')
    if (this.#active !== undefined)
      throw new PtyError('SEND_ACTIVE', 'something was sent that has not settled')
    const isAtPrompt = this.#exitCode !== undefined
    const send = this.#begin(request)
    if (send.isSettled) return send
    if (send.form === 'type') this.#type(request, keys, isAtPrompt)
    else if (isAtPrompt) this.#run(request.text)
    else this.#interrupt(send)
    return send
  }

  read(range: { readonly offset: number; readonly count: number }): PtyPage {
    return this.#scrollback.page(range)
  }

  signal(signal: TerminalSignal): boolean {
    const group = this.#handle.inspectForeground()?.processGroupId
    const isShell = group === undefined || group === this.#shell?.processGroupId
    if (signal === 'SIGKILL' && isShell && this.#status.state === 'running')
      throw new PtyError('SHELL_FAILED', 'SIGKILL would go to the shell itself; close the session instead')
    return this.#handle.signalForeground(signal) !== undefined
  }

  resize(size: TerminalSize): void {
    this.#handle.resize(size)
  }

  async close(): Promise<void> {
    this.#handle.terminate()
    const limit = AbortSignal.timeout(this.#limits.disposeGraceMs + patienceMs)
    if (!(await this.#handle.waitForExit(limit)))
      throw new PtyError('SHELL_FAILED', `the shell of process ${this.pid} could not be ended`)
    await this.#ended
  }

  #begin(request: PtySend): Send {
    const send = new Send(request, performance.now())
    if (this.#status.state === 'exited') {
      send.finish(this.#resultOf(send, 'session_exit'))
      return send
    }
    const before = this.#handle.inspectForeground()
    if (this.#exitCode !== undefined) this.#shell = before
    send.waitBefore = before?.inputWait
    this.#exitCode = undefined
    this.#active = send
    this.#lookIn(this.#limits.pollIntervalMs)
    const { signal } = request
    const onAbort = (): void => {
      send.cancelledAt ??= performance.now()
      this.#handle.signalForeground('SIGINT')
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    void send.result.then(() => signal?.removeEventListener('abort', onAbort))
    if (signal?.aborted === true) onAbort()
    return send
  }

  #type({ text, submit }: PtySend, keys: string, isAtPrompt: boolean): void {
    // A shell reads lines; what has the terminal to itself knows the key.
    const enter = submit ? (isAtPrompt ? '\n' : '\r') : ''
    this.#handle.write(text + keys + enter)
  }

  #run(command: string): void {
    const line = runLine(this.#dialect, command, { number: ++this.#runs, nonce: this.#nonce })
    this.#scrollback.append(`${command}\n`)
    this.#isMuted = true
    this.#handle.write(`${line}\n`)
  }

  #setUp(): void {
    this.#isMuted = true
    this.#handle.write(`${setUpLine(this.#dialect, this.#nonce)}\n`)
  }

  /** Puts the shell back at its prompt, if it can be; what it then says starts the command. */
  #interrupt(send: Send): void {
    send.isStarted = false
    this.#handle.signalForeground('SIGINT')
    this.#handle.write('\n')
    this.#setUp()
  }

  #onData(bytes: Uint8Array): void {
    this.#slowDown(bytes.length)
    for (const piece of this.#stream.push(bytes)) this.#take(piece)
    if (this.#active?.isAtPrompt === true && this.#active.form === 'run') this.#look()
  }

  #take(piece: Piece): void {
    const send = this.#active
    if (piece.kind === 'prompt') return this.#onPrompt(piece.exitCode, send)
    if (piece.kind === 'start') return this.#onStart(piece.number, send)
    if (send !== undefined) send.lastOutputAt = performance.now()
    if (!this.#isMuted) {
      this.#scrollback.append(piece.text)
      // What follows the mark is the prompt, and no output of the command.
      if (send?.form !== 'run' || !send.isAtPrompt) send?.take(piece.text)
    } else if (this.#runs === 0) this.#startText = cutText(this.#startText + piece.text, longestStartText)
  }

  #onStart(number: number | undefined, send: Send | undefined): void {
    this.#exitCode = undefined
    if (send === undefined) return
    send.isAtPrompt = false
    if (number !== this.#runs || send.isBegun) return
    send.isBegun = true
    this.#isMuted = false
  }

  #onPrompt(exitCode: number, send: Send | undefined): void {
    if (send?.isBegun === false) {
      if (!send.isStarted) {
        send.isStarted = true
        this.#run(send.request.text)
      }
      return
    }
    this.#isMuted = false
    this.#exitCode = exitCode
    if (send !== undefined) send.isAtPrompt = true
  }

  #onEnd(status: PtyStatus): void {
    for (const piece of this.#stream.end()) this.#take(piece)
    this.#scrollback.end()
    this.#status = status
    this.#exitCode = undefined
    this.#look()
  }

  #look(): void {
    const send = this.#active
    if (send === undefined) return
    const wait = this.#waitOf(send)
    if (wait === undefined)
      return this.#lookIn(pollAfter(performance.now() - send.lastOutputAt, this.#limits))
    clearTimeout(this.#poll)
    this.#active = undefined
    send.finish(this.#resultOf(send, wait))
  }

  #waitOf(send: Send): PtyWait | undefined {
    const now = performance.now()
    const silentMs = now - send.lastOutputAt
    const isSilent = silentMs >= this.#limits.exactProbeAfterMs
    const needsLook = send.form === 'type' ? isSilent || send.isAtPrompt : isSilent && !send.isAtPrompt
    const front = needsLook ? this.#handle.inspectForeground() : undefined
    if (front?.inputWait !== undefined && front.inputWait === send.lastWait && this.#isReplaced(front)) {
      this.#adopt(front)
      return undefined
    }
    const wait = settle(
      {
        form: send.form,
        isSubmitted: send.request.submit,
        isPatient: send.request.isPatient === true,
        hasExited: this.#status.state === 'exited',
        isAtPrompt: send.isAtPrompt,
        isShellInFront: front && this.#shell && front.processGroupId === this.#shell.processGroupId,
        inputWait: front?.inputWait,
        waitBefore: send.waitBefore,
        lastWait: send.lastWait,
        sinceSendMs: now - send.startedAt,
        silentMs,
        timeoutMs: this.#timeoutOf(send),
      },
      this.#limits,
    )
    send.lastWait = front?.inputWait
    return wait
  }

  #timeoutOf({ request, isStarted, cancelledAt, startedAt }: Send): number {
    if (cancelledAt !== undefined) return cancelledAt - startedAt + interruptMs
    return isStarted ? (request.timeoutMs ?? this.#limits.timeoutMs) : interruptMs
  }

  /** Whether the shell has put another program in its own place. */
  #isReplaced({ processGroupId, commandLine }: Foreground): boolean {
    const shell = this.#shell
    return (
      this.#active?.form === 'run' &&
      shell?.processGroupId === processGroupId &&
      shell.commandLine !== commandLine &&
      dialectOf(commandLine) !== undefined
    )
  }

  /** Another shell in place of the first, which knows nothing of marks yet. */
  #adopt(front: Foreground): void {
    this.#shell = front
    this.#dialect = dialectOf(front.commandLine) ?? this.#dialect
    this.#setUp()
  }

  #resultOf(send: Send, wait: PtyWait): PtySendResult {
    const exitCode = wait === 'stdin_read' && send.isAtPrompt ? this.#exitCode : undefined
    return {
      wait,
      ...(exitCode !== undefined && { exitCode }),
      isStarted: send.isStarted,
      status: this.#status,
    }
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#poll)
    this.#poll = setTimeout(() => this.#look(), ms)
  }

  #slowDown(bytes: number): void {
    const now = performance.now()
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + windowMs
      this.#windowBytes = 0
    }
    this.#windowBytes += bytes
    if (this.#windowBytes < windowBytes || this.#status.state === 'exited') return
    this.#handle.output.pause()
    setTimeout(() => this.#handle.output.resume(), this.#windowEnd - now)
  }
}

/** More seldom the longer nothing comes: each look is one at every process. */
function pollAfter(silentMs: number, { pollIntervalMs }: ReadinessLimits): number {
  return Math.min(Math.max(pollIntervalMs, silentMs / 4), longestPollMs)
}

/** Of a program that is a shell; undefined for others. */
function dialectOf(commandLine: string): ShellDialect | undefined {
  const name = /([^/]*)$/.exec(commandLine.split('\0', 1)[0] ?? '')?.[1]?.replace(/^-/, '') ?? ''
  if (name === 'bash') return 'bash'
  return ['sh', 'dash', 'ash', 'ksh', 'mksh', 'busybox'].includes(name) ? 'sh' : undefined
}
