// oxlint-disable no-restricted-globals -- its process is that of the program

type Frame = Readonly<Record<string, unknown>>
type Settlers = readonly [resolve: (value: unknown) => void, reject: (error: unknown) => void]
interface Shape {
  readonly global: string
  readonly functions: readonly string[]
  readonly errorClass?: { readonly name: string; readonly memberNameProperty: string }
}
interface Level {
  readonly source: object
  readonly keys: readonly string[]
  readonly isArray: boolean
  at: number
}

/**
 * Runs one program in a process of its own, to which the text of this class is sent: it uses nothing from outside.
 *
 * It speaks for the program: a frame is a line that begins with a mark which the host made up.
 *
 * Everything it needs later is taken before the program runs, which may change any global. It keeps no secret from the
 * program and is no boundary: the host believes nothing that comes from here.
 */
export class NodeChild {
  readonly write = process.getBuiltinModule('node:fs').writeSync
  readonly bytesOf = Buffer.from
  readonly nobody = new Int32Array(new SharedArrayBuffer(4))
  readonly vm = process.getBuiltinModule('node:vm')
  readonly stringify = JSON.stringify
  readonly parse = JSON.parse
  readonly ownKeys = Reflect.ownKeys
  readonly descriptor = Object.getOwnPropertyDescriptor
  readonly prototype = Object.getPrototypeOf
  readonly isArray = Array.isArray
  readonly isFinite = Number.isFinite
  readonly is = Object.is
  readonly plain = Object.prototype
  readonly list = Array.prototype
  readonly text = String
  readonly wait = Atomics.wait
  readonly leave = (process as unknown as { reallyExit(code: number): never }).reallyExit.bind(process, 0)
  readonly input = process.stdin
  readonly pending = Object.create(null) as Record<number, Settlers>
  readonly answered = Object.create(null) as Record<number, boolean>
  readonly seen = Object.create(null) as Record<number, boolean>
  readonly errors = Object.create(null) as Record<string, (name: string, message: string) => Error>
  readonly callClass = this.createCallClass()
  mark = ''
  namespaces: readonly Shape[] = []
  waiting = 0
  lastId = 0
  isOver = false
  buffered = ''

  listen(): void {
    this.clean()
    this.input.setEncoding('utf8')
    this.input.on('data', (chunk: unknown) => {
      this.buffered += chunk as string
      for (let end = this.buffered.indexOf('\n'); end !== -1; end = this.buffered.indexOf('\n')) {
        const line = this.buffered.substring(0, end)
        this.buffered = this.buffered.substring(end + 1)
        this.receive(this.parse(line) as Frame)
      }
    })
    // Nobody is there any more.
    this.input.on('end', () => this.leave())
    process.on('uncaughtException', error => this.fail(error))
    process.on('unhandledRejection', (error, promise) => {
      // That an answered call failed without anybody looking, the host tells.
      if (!(promise instanceof this.callClass && this.answered[promise.id] === true)) this.fail(error)
    })
    process.on('beforeExit', () => this.fail(new Error('the program waits for what will never come')))
  }

  /** Takes away what would reach out where no sandbox stands around this process. */
  clean(): void {
    for (const name of Object.keys(process.env)) delete process.env[name]
    const refuse = (): never => {
      throw Object.assign(new Error('a program reaches nothing but its tools'), { code: 'ERR_ACCESS_DENIED' })
    }
    Object.assign(process, { kill: refuse, _kill: refuse, abort: refuse, _getActiveHandles: refuse })
    // Of these Node's own permissions know nothing.
    const { Socket, Server } = process.getBuiltinModule('node:net')
    Object.assign(Socket.prototype, { connect: refuse })
    Object.assign(Server.prototype, { listen: refuse })
    const { Socket: Datagrams } = process.getBuiltinModule('node:dgram')
    Object.assign(Datagrams.prototype, { bind: refuse, connect: refuse, send: refuse })
    const { Console } = process.getBuiltinModule('node:console')
    const nothing = (): void => {}
    const streamOf = (write: (text: string) => void): NodeJS.WritableStream =>
      ({
        write: (chunk: string | Uint8Array, ...rest: unknown[]) => {
          write(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())
          const done = rest[rest.length - 1]
          if (typeof done === 'function') done()
          return true
        },
        end: nothing,
        on: nothing,
        once: nothing,
        removeListener: nothing,
        listenerCount: () => 0,
        isTTY: false,
        writable: true,
      }) as unknown as NodeJS.WritableStream
    const log = streamOf(text => this.log(text.endsWith('\n') ? text.substring(0, text.length - 1) : text))
    const raw = streamOf(text => this.put(text))
    Object.defineProperty(process, 'stdin', { value: undefined })
    Object.defineProperty(process, 'stdout', { value: raw })
    Object.defineProperty(process, 'stderr', { value: raw })
    Object.defineProperty(globalThis, 'console', {
      value: new Console({ stdout: log, stderr: log, colorMode: false }),
      writable: true,
      configurable: true,
    })
  }

  receive(frame: Frame): void {
    if (frame['type'] === 'boot') {
      this.mark = frame['mark'] as string
      this.namespaces = frame['namespaces'] as readonly Shape[]
      this.send('{"type":"boot-ack"}')
      return
    }
    if (frame['type'] === 'run') {
      this.input.unref()
      void this.run(frame['source'] as string)
      return
    }
    if (frame['type'] === 'reply') this.reply(frame['id'] as number, frame)
  }

  async run(source: string): Promise<void> {
    try {
      const { USE_MAIN_CONTEXT_DEFAULT_LOADER: importModuleDynamically } = this.vm.constants
      const options = { filename: 'program.ts', lineOffset: -1, importModuleDynamically }
      const main = this.vm.runInThisContext(source, options) as (...globals: unknown[]) => Promise<unknown>
      const value = await main(...this.globals())
      this.finish(value)
    } catch (error) {
      this.fail(error)
    }
  }

  finish(value: unknown): void {
    if (value === undefined) {
      this.end('')
      return
    }
    try {
      this.end(`,"value":${this.encode(value, 'value')}`)
    } catch (error) {
      this.endWith('invalid-output', this.describe(error, ''))
    }
  }

  fail(error: unknown): void {
    this.endWith('exception', this.describe(error, 'program.ts:'))
  }

  endWith(kind: string, message: string): void {
    this.end(`,"error":${this.stringify({ kind, message })}`)
  }

  end(fields: string): void {
    if (this.isOver) return
    this.isOver = true
    let unread = ''
    for (let id = 1; id <= this.lastId; id++)
      if (this.answered[id] === true && this.seen[id] !== true) unread += unread === '' ? id : `,${id}`
    this.send(`{"type":"done","unread":[${unread}]${fields}}`)
    this.leave()
  }

  log(text: string): void {
    this.send(`{"type":"log","text":${this.stringify(text)}}`)
  }

  send(json: string): void {
    this.put(`${this.mark}${json}\n`)
  }

  put(text: string): void {
    let bytes = this.bytesOf(text)
    while (bytes.length > 0) {
      try {
        bytes = bytes.subarray(this.write(1, bytes))
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'EAGAIN') throw error
        this.wait(this.nobody, 0, 0, 1)
      }
    }
  }

  /** What stands for the parameters of the program, in the order of the host's wrapper. */
  globals(): unknown[] {
    const globals: unknown[] = []
    for (const { global, functions, errorClass } of this.namespaces) {
      const namespace = Object.create(null) as object
      for (const name of functions) {
        const value = (args: unknown): unknown => this.call(global, name, args)
        Object.defineProperty(namespace, name, { value, enumerable: true })
      }
      globals.push(Object.freeze(namespace))
      if (errorClass === undefined) continue
      const made = this.createErrorClass(errorClass.name, errorClass.memberNameProperty)
      this.errors[global] = (name, message) => new made(message, name)
      globals.push(made)
    }
    return globals
  }

  call(global: string, name: string, args: unknown): unknown {
    let id = 0
    const promise = new this.callClass((resolve, reject) => {
      const text = this.encode(args === undefined ? {} : args, 'arguments')
      id = ++this.lastId
      const head = `{"type":"call","id":${id},"global":${this.stringify(global)},"name":${this.stringify(name)}`
      this.pending[id] = [resolve, reason => reject(this.errorOf(global, name, reason))]
      if (this.waiting++ === 0) this.input.ref()
      this.send(`${head},"args":${text}}`)
    })
    promise.id = id
    return promise
  }

  reply(id: number, frame: Frame): void {
    const settlers = this.pending[id]
    if (settlers === undefined) return
    delete this.pending[id]
    this.answered[id] = true
    if (--this.waiting === 0) this.input.unref()
    if (frame['ok'] === true) settlers[0](frame['value'])
    else settlers[1](frame['message'])
  }

  errorOf(global: string, name: string, message: unknown): Error {
    return this.errors[global]?.(name, message as string) ?? new Error(message as string)
  }

  createCallClass() {
    const { seen } = this
    const { then } = Promise.prototype
    const { apply } = Reflect
    return class ToolCall extends Promise<unknown> {
      declare id: number

      static override get [Symbol.species](): PromiseConstructor {
        return Promise
      }

      // Whoever waits asks for it: await, catch and finally too.
      // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
      override then<A, B>(
        onValue?: ((value: unknown) => A | PromiseLike<A>) | null,
        onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
      ): Promise<A | B> {
        seen[this.id] = true
        return apply(then, this, [onValue, onError]) as Promise<A | B>
      }
    }
  }

  createErrorClass(name: string, member: string) {
    const made = class extends Error {
      constructor(message: string, of: string) {
        super(message)
        Object.defineProperty(this, member, {
          value: of,
          enumerable: true,
          writable: true,
          configurable: true,
        })
      }
    }
    Object.defineProperty(made, 'name', { value: name })
    Object.defineProperty(made.prototype, 'name', { value: name, writable: true, configurable: true })
    return made
  }

  /** The JSON text of `root`. Throws a TypeError that names the path to what JSON would lose. */
  encode(root: unknown, name: string): string {
    const levels: Level[] = []
    const open = new Set<object>()
    let depth = 0
    let text = ''
    const path = (): string => {
      let at = name
      for (let index = 0; index < depth && index < 8; index++) {
        const level = levels[index] as Level
        const key = level.keys[level.at - 1] as string
        at += level.isArray ? `[${key}]` : `.${key}`
      }
      return at
    }
    const put = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) {
        text += this.encodeScalar(value, path)
        return
      }
      if (open.has(value)) throw new TypeError(`${path()} contains itself`)
      const isArray = this.isArray(value)
      levels[depth] = { source: value, keys: this.keysOf(value, isArray, path), isArray, at: 0 }
      depth++
      open.add(value)
      text += isArray ? '[' : '{'
    }
    put(root)
    while (depth > 0) {
      const level = levels[depth - 1] as Level
      if (level.at === level.keys.length) {
        text += level.isArray ? ']' : '}'
        open.delete(level.source)
        depth--
        continue
      }
      const key = level.keys[level.at++] as string
      const found = this.descriptor(level.source, key)
      if (level.at > 1) text += ','
      if (!level.isArray) text += `${this.stringify(key)}:`
      if (found === undefined || !('value' in found) || found.enumerable !== true)
        throw new TypeError(`${path()} is no plain property`)
      put(found.value)
    }
    return text
  }

  keysOf(value: object, isArray: boolean, path: () => string): readonly string[] {
    const prototype: unknown = this.prototype(value)
    if (prototype !== (isArray ? this.list : this.plain) && (isArray || prototype !== null))
      throw new TypeError(`${path()} is no plain ${isArray ? 'list' : 'object'}`)
    const keys = this.ownKeys(value)
    for (let index = 0; index < keys.length; index++)
      if (typeof keys[index] === 'symbol') throw new TypeError(`${path()} has a symbol for a key`)
    if (!isArray) return keys as string[]
    // The last one is its length.
    if (keys.length !== (value as unknown[]).length + 1) throw new TypeError(`${path()} has holes or names`)
    keys.length -= 1
    return keys as string[]
  }

  encodeScalar(value: unknown, path: () => string): string {
    if (value === null || typeof value === 'boolean' || typeof value === 'string')
      return this.stringify(value)
    if (typeof value !== 'number') throw new TypeError(`${path()} is ${this.kindOf(value)}`)
    if (!this.isFinite(value) || this.is(value, -0))
      throw new TypeError(`${path()} is ${this.is(value, -0) ? '-0' : this.text(value)}`)
    return this.stringify(value)
  }

  kindOf(value: unknown): string {
    return value === undefined ? 'undefined' : `a ${typeof value}`
  }

  /** `where` marks the lines of the stack that are of interest. */
  describe(error: unknown, where: string): string {
    try {
      if (!(error instanceof Error)) return `thrown: ${this.text(error)}`
      const lines = where === '' ? [] : this.text(error.stack).split('\n')
      const places = lines.filter(line => line.includes(where) && line.trimStart().startsWith('at '))
      const text = `${this.text(error.name)}: ${this.text(error.message)}`
      const shown = places.filter((_, index) => index < 5).map(line => `\n    ${line.trim()}`)
      return where === '' ? this.text(error.message) : text + shown.join('')
    } catch {
      return '<unprintable thrown value>'
    }
  }
}
