import { createRequire } from 'node:module'
import type { request as httpRequest } from 'node:http'
import type { request as httpsRequest } from 'node:https'

/** Required, not imported: to import node:http reads all of its exports, and that loads fetch. */
const load = createRequire(import.meta.url)

export const http = (): { readonly request: typeof httpRequest } =>
  load('node:http') as { request: typeof httpRequest }
export const https = (): { readonly request: typeof httpsRequest } =>
  load('node:https') as { request: typeof httpsRequest }
