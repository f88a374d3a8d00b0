import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, MessageId } from '@dsh/protocol'
import type { ContentBlock, MessageSource, SessionEvent } from '@dsh/protocol'
import { linesOf } from './lines.ts'
import { Tally } from './tally.ts'
import { Transcript } from './transcript.ts'

const callId = CallId('c1')

type Part = readonly [type: string, data: object]

/** The events `parts` name, numbered, one every 100 ms. */
function log(...parts: readonly Part[]): SessionEvent[] {
  return parts.map(
    ([type, data], seq) =>
      ({ type, seq, time: 1000 + seq * 100, data, surfaceOp: 'append' }) as unknown as SessionEvent,
  )
}

function text(words: string): ContentBlock {
  return { type: 'text', text: words }
}

const place = { turn: 1, step: 1 }
const message = (role: string, source: MessageSource, ...content: ContentBlock[]) => ({
  id: MessageId('m'),
  role,
  source,
  content,
})
const prompt = (words: string): Part => ['user/message', message('user', { kind: 'user' }, text(words))]
const answer = (...content: ContentBlock[]): Part => [
  'assistant/message',
  { ...place, message: message('assistant', { kind: 'model', provider: 'p', model: 'm' }, ...content) },
]
const call = (name: string, args: unknown): Part => [
  'tool/call',
  { ...place, callId, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
]
const result = (words: string, error?: string, meta?: object): Part => [
  'tool/result',
  {
    ...place,
    message: message(
      'user',
      { kind: 'tool', callId },
      {
        type: 'tool-result',
        toolCallId: callId,
        content: [text(words)],
        ...(error === undefined ? {} : { isError: true }),
      },
    ),
    ...(error === undefined ? {} : { error: { name: 'ToolError', code: error } }),
    ...(meta === undefined ? {} : { meta }),
  },
]
const usage = (inputTokens: number, outputTokens: number): Part => [
  'assistant/chunk',
  { ...place, chunk: { type: 'usage', usage: { inputTokens, outputTokens } } },
]
const finish = (reason: object): Part => ['assistant/chunk', { ...place, chunk: { type: 'finish', reason } }]
const start: Part = ['turn/start', { turn: 1 }]
const end = (reason: object): Part => ['turn/end', { turn: 1, reason }]

function shown(...parts: Part[]): string {
  const transcript = new Transcript('/srv')
  const entries = log(...parts).flatMap(event => transcript.next(event) ?? [])
  return entries.map(entry => linesOf(entry, { color: false })).join('')
}

function counted(...parts: Part[]): Tally {
  const tally = new Tally()
  for (const event of log(...parts)) tally.observe(event)
  return tally
}

test('a session reads as prompts, answers and one line per call', () => {
  const lines = shown(
    prompt('fix it\n'),
    answer(text('I look.'), { type: 'tool-call', id: callId, name: 'read', arguments: '{}' }),
    call('read', { file_path: '/srv/src/a.ts' }),
    result('1: x'),
    call('edit', { file_path: 'src/a.ts', old_string: 'x', new_string: 'y' }),
    result('edited'),
    call('write', { file_path: '/elsewhere/b', content: '' }),
    result('written'),
    answer(text('Done.')),
  )
  assert.equal(
    lines,
    [
      '› fix it',
      'I look.',
      '● read src/a.ts (100 ms)',
      '● edit src/a.ts (100 ms)',
      '● write /elsewhere/b (100 ms)',
      'Done.',
      '',
    ].join('\n'),
  )
})

test('a command shows how it ended and the last lines it printed', () => {
  const ran = (words: string, meta: object): string =>
    shown(
      call('bash', { command: 'make\n  all' }),
      result(words, undefined, { signal: null, timedOut: false, ...meta }),
    )
  const output = ['0', '1', '2', '3', '4', '', '5', '6', '7', '8', '[exit code: 7]'].join('\n')
  assert.equal(
    ran(output, { exitCode: 7 }),
    '● bash make ⏎ all (100 ms, exit 7)\n  │ 1\n  │ 2\n  │ 3\n  │ 4\n  │ 5\n  │ 6\n  │ 7\n  │ 8\n',
  )
  assert.equal(ran('ok', { exitCode: 0 }), '● bash make ⏎ all (100 ms, exit 0)\n  │ ok\n')
  assert.match(ran('', { exitCode: null, signal: 'SIGSEGV' }), /, killed by SIGSEGV\)\n/)
  assert.match(ran('', { exitCode: null, signal: 'SIGTERM', timedOut: true }), /, timed out\)\n/)
})

test('a change is told by the result, not by the name of the tool', () => {
  const seen = { key: 'k', version: 'v' }
  const change = { operation: 'update', before: 'a', after: 'b' }
  const edit = (meta: object): Part[] => [call('patch', { file_path: 'a' }), result('ok', undefined, meta)]
  assert.equal(shown(...edit({ path: '/srv/b', seen, change })), '● patch a (100 ms) → b\n')
  assert.equal(shown(...edit({ path: '/srv/a', seen, change })), '● patch a (100 ms)\n')
  assert.equal(shown(...edit({ path: '/srv/b', seen })), '● patch a (100 ms)\n')
})

test('a call is timed from the moment its body starts', () => {
  const lines = shown(call('read', { file_path: 'a' }), ['tool/start', { ...place, callId }], result('1: x'))
  assert.equal(lines, '● read a (100 ms)\n')
})

test('a call that a crash cut off is shown without a time', () => {
  const cut = [call('bash', { command: 'make' }), result('Look first.', 'TOOL_OUTCOME_UNKNOWN')]
  assert.equal(shown(...cut), '✗ bash make (outcome unknown)\n  │ Look first.\n')
})

test('a failed call shows its code and why, and changed nothing', () => {
  const failed = [call('edit', { file_path: 'a' }), result('old_string is not in the file', 'FS_NO_MATCH')]
  assert.equal(shown(...failed), '✗ edit a (100 ms, FS_NO_MATCH)\n  │ old_string is not in the file\n')
  const transcript = new Transcript('/srv')
  const [entry] = log(...failed).flatMap(event => transcript.next(event) ?? [])
  assert.deepEqual(entry?.kind === 'tool' && entry.changed, [])
})

test('a call that was cut off is told as that, before it ran and while it did', () => {
  for (const code of ['ABORTED', 'ABORTED_BEFORE_DISPATCH'])
    assert.equal(
      shown(call('bash', { command: 'make' }), result('stopped', code)),
      '✗ bash make (100 ms, cancelled)\n  │ stopped\n',
    )
})

test('arguments that are no JSON, and calls nobody announced, still give a line', () => {
  assert.equal(
    shown(call('read', '{"file_path": '), result('bad', 'INVALID_ARGS')),
    '✗ read (100 ms, INVALID_ARGS)\n  │ bad\n',
  )
  assert.equal(shown(result('late')), '● tool (0 ms)\n')
})

test('escapes in names, arguments, output and answers are inert', () => {
  const evil = '\u001b]0;x\u0007'
  const lines = shown(
    prompt(evil),
    call(evil, { command: `ls ${evil}` }),
    result(`${evil}`, `E`),
    answer(text(`hi ${evil}`)),
    end({ kind: 'error', error: { code: 'X', message: evil } }),
  )
  assert.ok(!lines.includes('\u001b') && !lines.includes('\u0007'), lines)
})

test('a turn that did not complete says why', () => {
  assert.equal(shown(end({ kind: 'completed' })), '')
  assert.equal(shown(end({ kind: 'aborted', reason: { kind: 'user' } })), '■ cancelled\n')
  assert.equal(
    shown(end({ kind: 'error', error: { code: 'SERVER', message: 'status 500' } })),
    '■ SERVER: status 500\n',
  )
})

test('messages of plugins are no prompts', () => {
  assert.equal(shown(['user/message', message('user', { kind: 'plugin', plugin: 'time' }, text('now'))]), '')
})

test('usage is summed over all attempts, failed ones too, and counted once each', () => {
  const failed = finish({ kind: 'error', failure: { code: 'SERVER', message: 'x' } })
  const message: Part = [
    'assistant/message',
    { ...answer(text('a'))[1], usage: { inputTokens: 10, outputTokens: 1 } },
  ]
  const tally = counted(
    start,
    usage(5, 1),
    failed,
    usage(10, 1),
    finish({ kind: 'stop' }),
    message,
    usage(3, 0),
    failed,
    message,
  )
  assert.deepEqual(tally.usage, { inputTokens: 28, outputTokens: 3 })
})

test('the answer is the text of the last message of the last turn', () => {
  const tally = counted(
    start,
    answer(text('first')),
    end({ kind: 'completed' }),
    start,
    answer(text('second '), { type: 'reasoning', text: 'hm' }, text('part')),
  )
  assert.equal(tally.answer, 'second part')
  assert.equal(tally.end, undefined)
  tally.observe(log(end({ kind: 'max-tokens' }))[0] as SessionEvent)
  assert.deepEqual(tally.end, { kind: 'max-tokens' })
  assert.equal(counted(start, answer(text('old')), start).answer, '')
})
