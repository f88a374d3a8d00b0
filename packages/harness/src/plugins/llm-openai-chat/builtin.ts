import { createRequire } from 'node:module'
import type { Agent as HttpAgent, request as httpRequest } from 'node:http'
import type { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { connect } from 'node:tls'
import type { createBrotliDecompress, createUnzip } from 'node:zlib'

/**
 * Modules of Node at their first use. They are required: importing node:http as a module namespace reads all of its
 * exports, and that loads fetch, 40 ms and 16 MB.
 */
const load = createRequire(import.meta.url)

export interface HttpModule {
  readonly request: typeof httpRequest
  readonly Agent: typeof HttpAgent
}

export interface HttpsModule {
  readonly request: typeof httpsRequest
  readonly Agent: typeof HttpsAgent
}

export const http = (): HttpModule => load('node:http') as HttpModule
export const https = (): HttpsModule => load('node:https') as HttpsModule
export const tls = (): { readonly connect: typeof connect } => load('node:tls') as { connect: typeof connect }
export const zlib = (): {
  readonly createBrotliDecompress: typeof createBrotliDecompress
  readonly createUnzip: typeof createUnzip
} => load('node:zlib') as ReturnType<typeof zlib>
