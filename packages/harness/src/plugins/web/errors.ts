import { HarnessError } from '../../kernel/index.ts'

/** Open: a provider may bring codes of its own. */
export type WebErrorCode =
  | 'WEB_DUPLICATE_PROVIDER'
  /** The provider that the config names is not registered. */
  | 'WEB_PROVIDER_CONFIGURED_MISSING'
  /** The provider that the config names cannot be used now. */
  | 'WEB_PROVIDER_CONFIGURED_UNAVAILABLE'
  | 'WEB_PROVIDER_UNAVAILABLE'
  /** Several can be used, and the config names none. */
  | 'WEB_PROVIDER_AMBIGUOUS'
  | 'WEB_PROVIDER_CREDENTIAL_MISSING'
  /** The network, the proxy or the other side failed. */
  | 'WEB_PROVIDER_ERROR'
  | 'WEB_ABORTED'
  | 'WEB_INVALID_URL'
  /** An address, a name or a port that may not be reached. */
  | 'WEB_BLOCKED_URL'
  | 'WEB_REDIRECT_BLOCKED'
  | 'WEB_FETCH_TOO_LARGE'
  | 'WEB_FETCH_TIMEOUT'
  | 'WEB_UNSUPPORTED_CONTENT_TYPE'
  | (string & {})

export class WebError extends HarnessError<WebErrorCode> {
  static {
    this.prototype.name = 'WebError'
  }
}
