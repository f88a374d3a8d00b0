import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { classifyFailure, defaultRetryPolicy } from './index.ts'
import type { LlmFailureCode, ProviderFailure } from './index.ts'

type Row = readonly [LlmFailureCode, ProviderFailure]

const overflowing: readonly Row[] = [
  {
    status: 400,
    message: "This model's maximum context length is 8192 tokens. However, you requested 9000.",
  },
  { status: 400, code: 'context_length_exceeded', message: 'Your input is too big.' },
  {
    status: 400,
    code: 'invalid_request_error',
    message: 'prompt is too long: 210000 tokens > 200000 maximum',
  },
  {
    status: 400,
    message: 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
  },
  {
    status: 400,
    message: 'InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]',
  },
  { status: 413, message: 'Request Entity Too Large' },
  { status: 400, code: '1261', message: 'Prompt exceeds max length' },
  { code: 'context_length_exceeded', message: 'context_length_exceeded' },
  { status: 429, code: 'quota_limit_reached', message: 'Input token exceed the limit' },
  { status: 400, message: 'the request exceeds the available context size. try increasing the context size' },
  { status: 400, message: 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000' },
  { status: 400, message: 'Invalid request: Your request exceeded model token limit: 262144' },
  { status: 400, message: 'Input is too long for requested model.' },
  {
    status: 400,
    message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  },
  { status: 500, message: 'context size exceeded' },
].map(failure => ['CONTEXT_WINDOW_EXCEEDED', failure])

const tooLargeInAnotherWay: readonly Row[] = [
  { status: 400, message: 'image exceeds 5 MB maximum: 6291456 bytes' },
  {
    status: 400,
    message: "Invalid 'tools[0].function.name': string too long. Expected at most 64 characters.",
  },
  {
    status: 400,
    message: 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.',
  },
  { status: 400, message: 'max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens' },
  { status: 413, message: 'file is too large' },
  { status: 422, message: 'value too large for field "top_k"' },
].map(failure => ['INVALID_REQUEST', failure])

const outOfMoney: readonly Row[] = [
  { status: 402, message: 'Insufficient Balance' },
  { status: 402, message: '' },
  {
    status: 429,
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  { status: 400, message: 'Your credit balance is too low to access the API.' },
  {
    status: 403,
    code: 'AllocationQuota.FreeTierOnly',
    message: 'The free tier of the model has been exhausted.',
  },
  { message: 'quota exceeded' },
  { status: 403, message: 'Payment required' },
].map(failure => ['QUOTA', failure])

const tooFast: readonly Row[] = [
  { status: 429, message: '' },
  { status: 429, code: 'rate_limit_exceeded', message: 'Rate limit reached for requests per minute' },
  {
    status: 429,
    message:
      'You exceeded your current quota. Quota exceeded for metric requests, limit: 20. Please retry in 35.5s.',
  },
  { status: 429, message: 'Resource has been exhausted (e.g. check quota).' },
  { status: 400, message: 'Too many requests' },
  { code: 'rate_limit_error', message: 'Number of requests has exceeded your limit' },
  { message: 'ThrottlingException: please slow down' },
  { message: '429 Too Many Requests' },
].map(failure => ['RATE_LIMIT', failure])

const busy: readonly Row[] = [
  { status: 500 },
  { status: 503, message: '<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>' },
  { status: 529, message: 'Overloaded' },
  { code: 'overloaded_error', message: 'Overloaded' },
  { message: 'Error Code server_error: overloaded' },
  { code: 'server_is_overloaded' },
  { message: 'server_is_overloaded' },
  { message: '529' },
  { message: '529 {"type":"error"}' },
  { message: 'Error code: 503 - upstream' },
  { code: 'server_error', message: 'The server had an error while processing your request.' },
  { code: 'upstream_error' },
  { code: 'error' },
  { code: 'api_error', message: 'something' },
  { status: 400, message: 'The engine is currently overloaded, please try again later' },
  { status: 503, message: 'too many requests' },
  { message: 'websocket closed with code 1013' },
  { message: 'Internal Server Error' },
].map(failure => ['SERVER', failure])

const brokenWire: readonly Row[] = [
  ['TRANSPORT', { message: 'fetch failed' }],
  ['TRANSPORT', { code: 'ECONNRESET', message: 'read ECONNRESET' }],
  ['TRANSPORT', { message: 'connect ECONNREFUSED 127.0.0.1:1' }],
  ['TRANSPORT', { message: 'getaddrinfo ENOTFOUND api.example' }],
  ['TRANSPORT', { message: 'socket hang up' }],
  ['TRANSPORT', { message: 'other side closed' }],
  ['TRANSPORT', { code: 'network_error' }],
  ['TRANSPORT', { message: 'WebSocket error' }],
  ['STREAM_CLOSED', { message: 'WebSocket closed: 1006' }],
  ['STREAM_CLOSED', { message: 'Premature close' }],
  ['STREAM_CLOSED', { message: 'terminated' }],
  ['STREAM_CLOSED', { message: 'stream closed before message_stop' }],
  ['STREAM_CLOSED', { message: 'unexpected end of file' }],
  ['TIMEOUT', { message: 'Request timed out.' }],
  ['TIMEOUT', { code: 'ETIMEDOUT' }],
  ['TIMEOUT', { status: 408 }],
]

const refused: readonly Row[] = [
  ['AUTH', { status: 401, message: 'Incorrect API key provided' }],
  ['AUTH', { status: 403, message: 'Forbidden' }],
  ['AUTH', { message: 'invalid_api_key: Incorrect API key provided' }],
  ['UNKNOWN_MODEL', { status: 404, code: 'model_not_found', message: 'The model `x` does not exist' }],
  ['UNKNOWN_MODEL', { status: 400, message: 'Model not found: x' }],
  ['INVALID_REQUEST', { status: 404, message: 'no route' }],
  ['INVALID_REQUEST', { status: 400, message: 'messages: text content blocks must be non-empty' }],
  ['INVALID_REQUEST', { code: 'invalid_request_error', message: 'bad' }],
]

const tables = { overflowing, tooLargeInAnotherWay, outOfMoney, tooFast, busy, brokenWire, refused }

describe('a failure of a provider gets the code of what it means', () => {
  for (const [kind, rows] of Object.entries(tables)) {
    for (const [code, failure] of rows) {
      test(`${kind}: ${JSON.stringify(failure)} is ${code}`, () => {
        assert.equal(classifyFailure(failure), code)
      })
    }
  }
})

test('what nothing is known of is UNKNOWN', () => {
  assert.equal(classifyFailure({}), 'UNKNOWN')
  assert.equal(classifyFailure({ message: 'The cat sat on the mat.' }), 'UNKNOWN')
  assert.equal(classifyFailure({ status: 200, message: 'fine' }), 'UNKNOWN')
})

test('a reason far behind a long page does not count', () => {
  const page = `${'x'.repeat(1_000_000)} overloaded`
  assert.equal(classifyFailure({ message: page }), 'UNKNOWN')
})

test('overload, rate limits and broken wires are tried again, money and keys never', () => {
  const retried = new Set(defaultRetryPolicy.retryableCodes)
  for (const [code] of [...busy, ...tooFast, ...brokenWire]) assert.ok(retried.has(code), code)
  for (const [code] of [...outOfMoney, ...overflowing, ...refused]) assert.ok(!retried.has(code), code)
})
