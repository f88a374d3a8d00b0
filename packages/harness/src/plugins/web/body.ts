import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Transform } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { WebError } from './errors.ts'

export interface Body {
  readonly bytes: Uint8Array
  /** There was more than `maxBytes`. */
  readonly isCut: boolean
}

export interface BodyLimits {
  /** Of what was sent and of what it decodes to. */
  readonly maxBytes: number
  /** Told of each piece that came over the network. */
  readonly onData?: () => void
}

/** Encodings that are asked for. */
export const acceptedEncodings = 'gzip, deflate, br, zstd'

/** More than this no server applies in earnest. */
const maxCodings = 3

/** Throws what the message breaks with, or WEB_PROVIDER_ERROR for what cannot be decoded. The message is over after. */
export async function readBody(message: IncomingMessage, { maxBytes, onData }: BodyLimits): Promise<Body> {
  const codings = codingsOf(message)
  const source = onData === undefined ? message : watched(message, onData)
  const parts: Uint8Array[] = []
  let length = 0
  try {
    for await (const part of decoded(source, codings)) {
      const room = maxBytes - length
      parts.push(part.length > room ? part.subarray(0, room) : part)
      length += part.length
      if (length > maxBytes) return { bytes: Buffer.concat(parts), isCut: true }
    }
    return { bytes: Buffer.concat(parts), isCut: false }
  } finally {
    message.destroy()
  }
}

function codingsOf({ headers }: IncomingMessage): readonly string[] {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map(coding => coding.trim())
    .filter(coding => coding !== '' && coding !== 'identity')
  const unknown = codings.find(coding => !Object.hasOwn(decoders, coding))
  if (unknown !== undefined || codings.length > maxCodings)
    throw new WebError('WEB_PROVIDER_ERROR', `the body is encoded as ${JSON.stringify(codings.join(', '))}`)
  return codings
}

type Bytes = AsyncIterable<Uint8Array>

const decoders: Readonly<Record<string, (source: Bytes) => Bytes>> = {
  gzip: through(createGunzip),
  'x-gzip': through(createGunzip),
  br: through(createBrotliDecompress),
  zstd: through(createZstdDecompress),
  deflate: inflate,
}

/** The coding that was applied last stands last, and comes off first. */
function decoded(source: Bytes, codings: readonly string[]): Bytes {
  return codings.reduceRight((bytes, coding) => decoders[coding]?.(bytes) ?? bytes, source)
}

function through(create: () => Transform): (source: Bytes) => Bytes {
  return async function* (source) {
    const decoder = create()
    const input = Readable.from(source, { objectMode: false })
    input.once('error', error => decoder.destroy(error))
    try {
      yield* input.pipe(decoder) as Bytes
    } catch (cause) {
      if (isCodingError(cause)) throw undecodable(cause)
      throw cause
    } finally {
      input.destroy()
      decoder.destroy()
    }
  }
}

/** Some servers leave out the wrapper that the name asks for. */
async function* inflate(source: Bytes): Bytes & AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done === true) return
  const isWrapped = ((first.value[0] ?? 0) & 0x0f) === 8
  yield* through(isWrapped ? createInflate : createInflateRaw)(startingWith(first.value, iterator))
}

async function* startingWith(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

async function* watched(source: Bytes, onData: () => void): AsyncGenerator<Uint8Array> {
  for await (const part of source) {
    onData()
    yield part
  }
}

function isCodingError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' && /^(Z_|ERR__|ERR_BROTLI|ERR_ZSTD|ZSTD_|ERR_PADDING)/.test(code)
}

function undecodable(cause: unknown): WebError {
  return new WebError('WEB_PROVIDER_ERROR', 'the body cannot be decoded; it is broken', { cause })
}
