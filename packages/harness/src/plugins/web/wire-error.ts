import { errorCode } from '../http/index.ts'
import { WebError } from './errors.ts'

/** Nothing was sent: asking in another way does not ask twice. */
export class NotConnected extends Error {
  readonly failure: WebError

  constructor(failure: WebError) {
    super(failure.message, { cause: failure })
    this.failure = failure
  }
}

/** What broke a connection, in words for whoever can mend it. Never repeats a login. */
export function networkError(error: unknown, url: URL, proxy: URL | undefined): WebError {
  if (error instanceof WebError) return error
  const code = errorCode(error)
  const { host } = url
  return new WebError('WEB_PROVIDER_ERROR', describe(code, host, proxy), { cause: error })
}

export function proxyError(proxy: URL, problem: string, options?: ErrorOptions): WebError {
  return new WebError('WEB_PROVIDER_ERROR', `proxy ${proxy.host} ${problem}`, options)
}

function describe(code: string, host: string, proxy: URL | undefined): string {
  const name = host.replace(/:\d+$/, '')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `${name} cannot be found (${code})`
  if (/^(CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERR_TLS_CERT_)/.test(code))
    return `the certificate of ${host} is not trusted (${code}); for an authority of your own set NODE_EXTRA_CA_CERTS, or ca in the config of web`
  if (code === 'HPE_HEADER_OVERFLOW') return `the headers of ${host} are too large`
  if (code.startsWith('HPE_')) return `${host} does not speak HTTP (${code})`
  const way = proxy === undefined ? '' : ` through proxy ${proxy.host}`
  return `${host} cannot be reached${way} (${code})`
}
