import type { IncomingMessage } from 'node:http'
import { WebError } from './errors.ts'

export interface NextHop {
  readonly url: URL
  /** The same host, with or without www, and no step back from https that nobody asked for. */
  readonly isSameSite: boolean
}

const redirects = [301, 302, 303, 307, 308]

/** Where the answer from `url` leads; undefined where it is an answer itself. Throws WEB_REDIRECT_BLOCKED. */
export function nextHop(
  url: URL,
  { statusCode = 0, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>,
  { allowsDowngrade }: { readonly allowsDowngrade: boolean },
): NextHop | undefined {
  const { location } = headers
  if (location === undefined || !redirects.includes(statusCode)) return undefined
  const next = URL.parse(fromBytes(location), url.href)
  if (next === null) throw new WebError('WEB_REDIRECT_BLOCKED', 'the redirect leads to what is no URL')
  next.hash ||= url.hash
  const isSafe = next.protocol === url.protocol || next.protocol === 'https:' || allowsDowngrade
  return { url: next, isSameSite: isSafe && siteOf(url) === siteOf(next) && url.port === next.port }
}

function siteOf({ hostname }: URL): string {
  return hostname.replace(/^www\./, '').replace(/\.$/, '')
}

/** Headers come as Latin-1; those who write more than ASCII into one mean UTF-8. */
function fromBytes(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}
