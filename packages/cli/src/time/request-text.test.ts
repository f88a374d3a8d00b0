import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CacheBreak, RequestComparison } from '@dsh/harness/plugins/time-travel'
import { rebuildRequest, requestsOf } from '@dsh/harness/plugins/time-travel'
import { Session } from '@dsh/harness/session'
import { answerFact, logOf, resultFact, textFact, userFact } from '@dsh/harness/testing'
import { SessionId } from '@dsh/protocol'
import { comparisonLines, requestLines } from './request-text.ts'
import type { ShownRequest } from './request-text.ts'

const config = { provider: 'p', model: 'm', maxTokens: 5 }
const tools = [{ name: 'tool', description: 'Does it.\nAlways.', parameters: {} }]
const failure = { code: 'SERVER', message: 'down' }
const log = logOf(
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hi\u001b[31m there')],
  [
    'request/header',
    {
      header: { config, adapterDefaults: { maxTokens: true }, system: 'Be brief.\nBe kind.', tools },
      reason: 'initial',
    },
  ],
  ['assistant/chunk', { turn: 1, step: 1, chunk: { type: 'finish', reason: { kind: 'error', failure } } }],
  ['assistant/chunk', textFact('ok')],
  ['assistant/message', answerFact('Looking.', ['c1'])],
  ['tool/result', resultFact('c1', 'gone', { error: { name: 'E', code: 'X' } })],
  ['step/end', { turn: 1, step: 1 }],
  ['step/start', { turn: 1, step: 2 }],
  ['step/end', { turn: 1, step: 2 }],
)
const id = SessionId('s1')
const session = Session.fromRestore(id, log, { version: 0, id, createdAt: 0 }, { readOnly: 'test' })

function shown(index: number): ShownRequest {
  const logged = requestsOf(session)[index]
  const rebuilt = logged && rebuildRequest(session, logged.seq)
  assert.ok(logged && rebuilt)
  return { logged, rebuilt, cached: index === 1 ? 1200 : undefined }
}

test('a request is told in full, and nothing in it acts on a terminal', () => {
  assert.deepEqual(requestLines(shown(2)), [
    'request 3 · turn 1, step 2 · before event #10 · p/m · no answer began, so it may not have been sent',
    '',
    'config    p/m, maxTokens 5 (of the adapter)',
    'system',
    '    │ Be brief.',
    '    │ Be kind.',
    'tools     1',
    '  tool  Does it. ⏎ Always.',
    'messages  3',
    '  0 user #2',
    '    │ hi␛[31m there',
    '  1 assistant #6',
    '    │ Looking.',
    '    │ [call c1] tool {}',
    '  2 user (tool) #7',
    '    │ [result of c1, failed]',
    '    │ gone',
  ])
  assert.equal(
    requestLines(shown(0))[0],
    'request 1 · turn 1, step 1 · before event #4 · p/m · failed at #4: SERVER',
  )
  assert.equal(
    requestLines(shown(1))[0],
    'request 2 · turn 1, step 1, attempt 2 · before event #5 · p/m · answered by #6 · 1,200 tokens from the cache',
  )
})

test('why a cache broke is told in words', () => {
  const told = (broken: CacheBreak): string | undefined => {
    const first = { part: 'tools', index: 0, before: 'a', after: 'b' } as const
    const found: RequestComparison = {
      sharedBytes: 28_400,
      beforeBytes: 30_000,
      afterBytes: 1_200_000,
      sharedMessages: 0,
      first,
      broken,
      harmless: ['maxTokens 5 → 6'],
    }
    const lines = comparisonLines(shown(0), shown(1), found)
    assert.deepEqual(lines.slice(3, 7), [
      '28.4 KB identical — cached',
      'first difference: tools',
      '- a',
      '+ b',
    ])
    assert.deepEqual(lines.slice(9), [
      'also different, without harm to the cache: maxTokens 5 → 6',
      'sizes: 30.0 KB and 1.2 MB',
    ])
    return lines[8]
  }
  const tool = { kind: 'tools', added: ['x'], removed: ['y'], changed: ['z'], reordered: false } as const
  const cases: [CacheBreak, string][] = [
    [{ kind: 'route', before: 'p/m', after: 'p/n' }, 'another model is asked, p/m → p/n'],
    [{ kind: 'config', before: 'none', after: 'high' }, 'the reasoning effort changed, none → high'],
    [{ kind: 'system' }, 'the system text changed'],
    [tool, 'the tool list changed (+x, -y, ~z)'],
    [
      { ...tool, added: [], removed: [], changed: [], reordered: true },
      'the tool list changed (another order)',
    ],
    [{ kind: 'history', index: 3 }, 'the history is another one from message 3 on'],
    [
      { kind: 'history', index: 3, replacedBy: { seq: 57, type: 'user/message', start: 12, end: 40 } },
      'the history was replaced at message 3: #57 (user/message) stands for #12 to #40',
    ],
  ]
  for (const [broken, text] of cases) assert.equal(told(broken), `cache broken here: ${text}`)
})
