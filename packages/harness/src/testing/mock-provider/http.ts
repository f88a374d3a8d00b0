import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** One HTTP/1.1 request as it came over the socket. */
export interface RawRequest {
  readonly method: string
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
  /** Counts TCP connections from 1, so that reuse can be seen. */
  readonly connection: number
  /** Resolves when the client has left this connection. */
  readonly closed: Promise<void>
}

/** What happens to the connection after the last byte. `hold` leaves it open and silent. */
export type ConnectionEnd = 'keep' | 'fin' | 'rst' | 'hold'

export interface RawServer {
  readonly port: number
  close(): Promise<void>
}

export type RequestHandler = (request: RawRequest, socket: Socket) => Promise<ConnectionEnd>

/** Serves HTTP by hand over TCP on 127.0.0.1, so that a handler may write any bytes at any pace. */
export async function listenRaw(handler: RequestHandler, port = 0): Promise<RawServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer({ noDelay: true }, socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    serve(socket, ++connections, handler)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return { port: (server.address() as AddressInfo).port, close: () => closeAll(server, sockets) }
}

function closeAll(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  for (const socket of sockets) socket.destroy()
  return closed
}

function serve(socket: Socket, connection: number, handler: RequestHandler): void {
  let received: Buffer = Buffer.alloc(0)
  let busy = false
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  const next = (): void => {
    if (busy || socket.destroyed) return
    const parsed = parseRequest(received)
    if (parsed === undefined) return
    received = received.subarray(parsed.length)
    busy = true
    void answer(handler, { ...parsed.request, connection, closed }, socket).then(() => {
      busy = false
      next()
    })
  }
  socket.on('data', bytes => {
    received = received.length === 0 ? bytes : Buffer.concat([received, bytes])
    next()
  })
  socket.on('end', () => socket.end())
}

async function answer(handler: RequestHandler, request: RawRequest, socket: Socket): Promise<void> {
  const end = await handler(request, socket)
  if (end === 'rst') socket.resetAndDestroy()
  if (end === 'fin') socket.end()
  if (end === 'hold') await request.closed
}

interface ParsedRequest {
  readonly request: Pick<RawRequest, 'method' | 'path' | 'headers' | 'bytes'>
  readonly length: number
}

/** The first whole request in `bytes`, or undefined while it is not all there. */
function parseRequest(bytes: Buffer): ParsedRequest | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [requestLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const [method = '', path = ''] = requestLine.split(' ')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const start = headEnd + 4
  const body =
    headers['transfer-encoding'] === undefined ? sized(bytes, start, headers) : chunked(bytes, start)
  return body && { request: { method, path, headers, bytes: body.bytes }, length: body.end }
}

interface Body {
  readonly bytes: Uint8Array
  readonly end: number
}

function sized(bytes: Buffer, start: number, headers: Readonly<Record<string, string>>): Body | undefined {
  const end = start + Number(headers['content-length'] ?? 0)
  return bytes.length < end ? undefined : { bytes: bytes.subarray(start, end), end }
}

function chunked(bytes: Buffer, start: number): Body | undefined {
  const parts: Uint8Array[] = []
  let at = start
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (bytes.length < end) return undefined
    if (size === 0) return { bytes: Buffer.concat(parts), end }
    parts.push(bytes.subarray(lineEnd + 2, end - 2))
    at = end
  }
}
