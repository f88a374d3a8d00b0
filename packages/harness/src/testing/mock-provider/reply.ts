import { setImmediate as turnOfTheLoop, setTimeout as sleep } from 'node:timers/promises'
import type { Socket } from 'node:net'
import type { ConnectionEnd } from './http.ts'

/** Token counts in the words of the wire. Overlap as there: hits and misses are part of the prompt. */
export interface WireUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_cache_hit_tokens: number
  readonly prompt_cache_miss_tokens: number
  readonly completion_tokens_details?: { readonly reasoning_tokens: number }
}

/** What a reply may look at when it is rendered. */
export interface ReplyContext {
  readonly model: string
  /** False: the client asked for one JSON answer. */
  readonly stream: boolean
  /** What this provider would charge for an answer of so many tokens. */
  charge(outputTokens: number, reasoningTokens: number): WireUsage
}

export interface Rendered {
  /** Absent: `pieces` are the whole response, status line included. */
  readonly head?: { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** One write each; in a chunked response one HTTP chunk each. */
  readonly pieces: readonly Uint8Array[]
  /** What the answer says it cost. */
  readonly usage?: WireUsage
}

interface Manner {
  readonly end: ConnectionEnd
  readonly chunked: boolean
  readonly bytewise: boolean
  readonly pauseMs: number
  readonly cut?: { readonly pieces?: number; readonly bytes?: number; readonly how: ConnectionEnd }
  readonly gates: readonly { readonly before: number; readonly open: Promise<unknown> }[]
}

const plain: Manner = { end: 'keep', chunked: true, bytewise: false, pauseMs: 0, gates: [] }

/** One scripted answer. The methods give a changed copy, so `reply.text('hi').bytewise().close()` reads as it acts. */
export class MockReply {
  readonly render: (context: ReplyContext) => Rendered
  readonly #manner: Manner

  constructor(render: (context: ReplyContext) => Rendered, manner: Partial<Manner> = {}) {
    this.render = render
    this.#manner = { ...plain, ...manner }
  }

  /** Writes the body one byte at a time. */
  bytewise(): MockReply {
    return this.#with({ bytewise: true })
  }

  /** Waits so long before each piece. */
  pace(pauseMs: number): MockReply {
    return this.#with({ pauseMs })
  }

  /** Writes piece number `before` (from 0) and all after it only once `open` has resolved. */
  gate(open: Promise<unknown>, before = 0): MockReply {
    return this.#with({ gates: [...this.#manner.gates, { before, open }] })
  }

  /** Leaves the connection open and silent after the last piece, without ending the body. */
  hold(): MockReply {
    return this.#with({ end: 'hold' })
  }

  /** Closes the connection after a whole body. */
  close(): MockReply {
    return this.#with({ end: 'fin' })
  }

  /** Resets the connection after a whole body. */
  reset(): MockReply {
    return this.#with({ end: 'rst' })
  }

  /** Sends the first so many pieces, or bytes of the body, and then ends the connection in this way. */
  cut(after: {
    readonly pieces?: number
    readonly bytes?: number
    readonly how: 'fin' | 'rst' | 'hold'
  }): MockReply {
    return this.#with({ cut: after })
  }

  /** Sends a body without a length that ends with the connection. */
  unchunked(): MockReply {
    return this.#with({ chunked: false, end: this.#manner.end === 'keep' ? 'fin' : this.#manner.end })
  }

  /** Writes the whole answer, faults included. */
  async send({ head, pieces }: Rendered, socket: Socket): Promise<ConnectionEnd> {
    const { cut, end, gates } = this.#manner
    const chunked = head !== undefined && this.#manner.chunked
    const body = cut?.bytes === undefined ? pieces.slice(0, cut?.pieces) : firstBytes(pieces, cut.bytes)
    const start = head === undefined ? nothing : headBytes(head, chunked)
    for (const [at, piece] of body.entries()) {
      await this.#turn(at)
      if (at === 0) await write(socket, start)
      await this.#sendPiece(socket, chunked ? chunkOf(piece) : piece)
    }
    if (body.length === 0) await write(socket, start)
    for (const gate of gates) if (gate.before >= body.length) await gate.open
    if (cut !== undefined) return cut.how
    if (chunked && end !== 'hold') await write(socket, lastChunk)
    return end
  }

  async #turn(at: number): Promise<void> {
    for (const gate of this.#manner.gates) if (gate.before === at) await gate.open
    if (this.#manner.pauseMs > 0) await sleep(this.#manner.pauseMs)
  }

  /** Bytewise, each byte gets a turn of the event loop, so that the reader sees it alone. */
  async #sendPiece(socket: Socket, bytes: Uint8Array): Promise<void> {
    if (!this.#manner.bytewise) return await write(socket, bytes)
    for (let at = 0; at < bytes.length; at++) {
      await write(socket, bytes.subarray(at, at + 1))
      await turnOfTheLoop()
    }
  }

  #with(change: Partial<Manner>): MockReply {
    return new MockReply(this.render, { ...this.#manner, ...change })
  }
}

const nothing = new Uint8Array()
const lastChunk = Buffer.from('0\r\n\r\n')

function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  if (socket.destroyed || bytes.length === 0) return Promise.resolve()
  return new Promise(resolve => socket.write(bytes, () => resolve()))
}

function headBytes(head: NonNullable<Rendered['head']>, chunked: boolean): Uint8Array {
  const headers = {
    ...head.headers,
    ...(chunked ? { 'transfer-encoding': 'chunked' } : { connection: 'close' }),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`HTTP/1.1 ${head.status} Mock\r\n${lines.join('')}\r\n`, 'latin1')
}

function chunkOf(piece: Uint8Array): Uint8Array {
  return piece.length === 0
    ? piece
    : Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
}

function firstBytes(pieces: readonly Uint8Array[], count: number): Uint8Array[] {
  const kept: Uint8Array[] = []
  let left = count
  for (const piece of pieces) {
    if (left <= 0) break
    kept.push(piece.subarray(0, left))
    left -= piece.length
  }
  return kept
}
