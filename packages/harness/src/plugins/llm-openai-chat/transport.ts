/** One HTTP request. Nothing is followed, retried or decoded but what its response says. */
export interface WireRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** Sent in order; its length is declared. */
  readonly body?: readonly Uint8Array[]
  /** Milliseconds for reaching the host, TLS included. */
  readonly connectTimeoutMs: number
  readonly signal: AbortSignal
}

export interface WireResponse {
  readonly status: number
  header(name: string): string | undefined
  /** The next bytes of the body as they arrive; undefined at its end. Rejects when the connection breaks. */
  read(): Promise<Uint8Array | undefined>
  /** Gives up on the rest of the body and the connection with it. Safe to call at any time. */
  discard(): void
  /** Gives the body a moment to end by itself, so that the connection can be used again; then like `discard`. */
  release(): void
}

/** Resolves when the head of the response is there. Rejects with `signal.reason` or with a `TransportError`. */
export type Transport = (request: WireRequest) => Promise<WireResponse>

/** The network failed, not the provider. `code` is the system's or the library's word for it. */
export class TransportError extends Error {
  static {
    this.prototype.name = 'TransportError'
  }

  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
