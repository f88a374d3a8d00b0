import type { LlmFailureCode } from './failure.ts'

/** What a provider said of a failed request. Every part may be missing. */
export interface ProviderFailure {
  /** HTTP status of the response, or the one that an error in the stream names. */
  readonly status?: number | undefined
  /** The error's machine word: a code, a type, a finish reason. */
  readonly code?: string | undefined
  readonly message?: string | undefined
}

/**
 * The one table by which provider failures get their code. What the provider means beats the status it chose: gateways
 * flatten both.
 */
export function classifyFailure(failure: ProviderFailure): LlmFailureCode {
  const { status, code = '', message = '' } = failure
  const words = spaced(`${code} ${message.slice(0, readMessageLength)}`)
  return (
    meaningOf(words, status) ??
    (status === undefined ? undefined : codeOfStatus(status, words)) ??
    codeWords.get(spaced(code).trim()) ??
    codeOfWords(words) ??
    'UNKNOWN'
  )
}

/** The reason stands at the beginning; the rest may be a whole page. */
const readMessageLength = 4096

/** Lower case, with the separators of machine words as spaces, so that one rule fits both ways of writing. */
function spaced(text: string): string {
  return text.toLowerCase().replaceAll(/[_-]+/g, ' ')
}

/** Too much for the model's context; a setting that is too large, or a file, is something else. */
const overflow = [
  /context (length|window|size|limit)s? (is |was )?exceeded/,
  /exceed\w* (the |this )?(model'?s? )?(available |maximum )?context/,
  /exceed\w* (the )?(model |input )?token limit/,
  /maximum (context|prompt) length/,
  /prompt (is )?too long/,
  /prompt exceeds (the )?max(imum)? length/,
  /input (is )?too long for/,
  /input tokens? (count )?(\(\d+\) )?exceeds?/,
  /input length [^.]{0,80}exceeds?/,
  /range of input length should be/,
  /reduce the length of (the|your) (messages|prompt|input)/,
  /number of tokens in the prompt cannot exceed/,
]

/** A limit that time alone lifts, soon. */
const window =
  /per (second|minute|hour)|\b(rpm|tpm|rps)\b|(try|retry)( again)? in \d|too many requests|rate ?limit|throttl|concurren/

const quota = [
  /insufficient (quota|balance|credit|fund)/,
  /(balance|credit)s? (is |are )?(not enough|too low|insufficient|exhausted)/,
  /exceed\w* your (current )?quota/,
  /quota (limit )?(reached|exceeded|exhausted|used up)/,
  /out of (credits?|quota)/,
  /free (tier|quota)[^.]{0,40}(exhausted|exceeded|used up)/,
  /payment required|billing error|in arrears|overdue payment/,
]

const overload =
  /overload|server (had an )?error|server is busy|internal (server )?error|service (is )?(temporarily )?unavailable|temporarily unavailable|at capacity|upstream error|bad gateway|gateway time ?out/

const unknownModel =
  /(model\b[^.]{0,80}(not found|not exist|not available)|unknown model|no such model|invalid model)/

function meaningOf(words: string, status: number | undefined): LlmFailureCode | undefined {
  const isTooMuch = overflow.some(pattern => pattern.test(words))
  if (isTooMuch && status !== 401 && status !== 403) return 'CONTEXT_WINDOW_EXCEEDED'
  const isSoonOver = window.test(words)
  if (status === 402 || (!isSoonOver && quota.some(pattern => pattern.test(words)))) return 'QUOTA'
  if (isSoonOver && status !== 401 && (status === undefined || status < 500)) return 'RATE_LIMIT'
  return undefined
}

function codeOfStatus(status: number, words: string): LlmFailureCode | undefined {
  if (status >= 500) return 'SERVER'
  if (status < 400) return undefined
  switch (status) {
    case 401:
    case 403:
      return 'AUTH'
    case 408:
      return 'TIMEOUT'
    case 413:
      return /image|picture|file|attachment/.test(words) ? 'INVALID_REQUEST' : 'CONTEXT_WINDOW_EXCEEDED'
    case 429:
      return 'RATE_LIMIT'
    default:
      if (unknownModel.test(words)) return 'UNKNOWN_MODEL'
      return overload.test(words) ? 'SERVER' : 'INVALID_REQUEST'
  }
}

/** Words that mean something only as the whole machine word. */
const codeWords = new Map<string, LlmFailureCode>([
  ['api error', 'SERVER'],
  ['error', 'SERVER'],
  ['authentication error', 'AUTH'],
  ['permission error', 'AUTH'],
  ['invalid request error', 'INVALID_REQUEST'],
  ['timeout', 'TIMEOUT'],
  ['timeout error', 'TIMEOUT'],
])

/** For failures without a status, in order: the first that fits counts. */
const wordRules: readonly (readonly [RegExp, LlmFailureCode])[] = [
  [overload, 'SERVER'],
  [/clos\w* [^.]{0,20}\b(1011|1012|1013)\b/, 'SERVER'],
  [/(invalid|incorrect|missing) api key|unauthori[sz]ed|authentication/, 'AUTH'],
  [unknownModel, 'UNKNOWN_MODEL'],
  [/time[ds]? ?out|deadline exceeded|etimedout/, 'TIMEOUT'],
  [
    /premature close|(stream|connection|socket|response)( was| is)? (closed|ended|terminated|disconnected)/,
    'STREAM_CLOSED',
  ],
  [
    /unexpected (eof|end of)|incomplete chunked|closed before|^\s*terminated|clos\w* [^.]{0,20}\b(1001|1006)\b/,
    'STREAM_CLOSED',
  ],
  [
    /econn|enotfound|eai again|epipe|ehostunreach|enetunreach|und err|socket hang ?up|other side closed/,
    'TRANSPORT',
  ],
  [
    /fetch failed|network ?(error|connection)|connection (reset|refused|error|lost|aborted)|websocket error/,
    'TRANSPORT',
  ],
]

function codeOfWords(words: string): LlmFailureCode | undefined {
  const rule = wordRules.find(([pattern]) => pattern.test(words))
  if (rule !== undefined) return rule[1]
  const named = /(?:^|error|status|code|http)[^\d.]{0,10}([45]\d\d)\b/.exec(words.trim())?.[1]
  return named === undefined ? undefined : codeOfStatus(Number(named), words)
}
