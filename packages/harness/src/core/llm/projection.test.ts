import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { ContentBlock, Message } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import {
  checkProjection,
  createAssistantMessage,
  createToolResultMessage,
  createUserMessage,
  LlmRuntime,
  markLoopRequest,
} from './index.ts'
import type { GenerateOptions } from './index.ts'
import { ProjectionCheck } from './projection.ts'

const prompt = createUserMessage({ content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } })
const says = (...content: readonly ContentBlock[]): Message =>
  createAssistantMessage({ content, source: { kind: 'model', provider: 'p', model: 'm' } })
const call = (id: string, raw = '{}'): ContentBlock => ({
  type: 'tool-call',
  id: CallId(id),
  name: 'read',
  arguments: raw,
})
const answer = (id: string): Message => createToolResultMessage({ callId: CallId(id), content: [] })
const text = (value: string): ContentBlock => ({ type: 'text', text: value })

function problems(...messages: readonly Message[]): readonly string[] {
  return checkProjection(messages).map(({ code, index, callId }) =>
    [code, index, callId].filter(part => part !== undefined).join(' '),
  )
}

test('a history in which each call is answered right away is fine', () => {
  assert.deepEqual(problems(), [])
  assert.deepEqual(
    problems(
      prompt,
      says(text('a'), call('1'), call('2')),
      answer('2'),
      answer('1'),
      says(text('b')),
      prompt,
    ),
    [],
  )
  assert.deepEqual(problems(says(call('1')), answer('1'), says(call('1')), answer('1')), [])
})

test('a call that is answered late or never is found where it was made', () => {
  assert.deepEqual(problems(says(call('1'), call('2')), answer('1')), ['UNANSWERED_CALL 0 2'])
  assert.deepEqual(problems(prompt, says(call('1')), prompt, answer('1')), [
    'UNANSWERED_CALL 1 1',
    'ANSWER_WITHOUT_CALL 3 1',
  ])
  assert.deepEqual(problems(says(call('1')), says(text('on'))), ['UNANSWERED_CALL 0 1'])
})

test('an answer to nothing and a second answer are found', () => {
  assert.deepEqual(problems(answer('1')), ['ANSWER_WITHOUT_CALL 0 1'])
  assert.deepEqual(problems(says(call('1')), answer('1'), answer('1'), answer('2')), [
    'ANSWERED_TWICE 2 1',
    'ANSWER_WITHOUT_CALL 3 2',
  ])
})

test('two calls under one id are found', () => {
  assert.deepEqual(problems(says(call('1'), call('1')), answer('1')), ['CALL_ID_TWICE 0 1'])
})

test('an assistant message that says nothing is found; one that only thought is not', () => {
  assert.deepEqual(problems(says()), ['EMPTY_ASSISTANT_MESSAGE 0'])
  assert.deepEqual(problems(says(text(''), text(''))), ['EMPTY_ASSISTANT_MESSAGE 0'])
  assert.deepEqual(problems(says({ type: 'reasoning', text: 'hm' })), [])
})

test('arguments that are no JSON object are found', () => {
  for (const raw of ['', '{"a": "ls', 'null', '[1]', '"text"', '{}{}', "{'a':1}", '{"a":1}x', '{"a":"\n"}']) {
    assert.deepEqual(problems(says(call('1', raw)), answer('1')), ['ARGUMENTS_NOT_AN_OBJECT 0 1'], raw)
  }
  assert.deepEqual(problems(says(call('1', ' {"__proto__": {}} ')), answer('1')), [])
})

test('a history that grows is looked at only where it grew, and one that changed is looked at anew', () => {
  const check = new ProjectionCheck()
  const codes = (...messages: readonly Message[]): readonly string[] =>
    check.check(messages).map(({ code }) => code)
  const asks = says(call('1'))
  assert.deepEqual(codes(prompt, asks), ['UNANSWERED_CALL'])
  assert.deepEqual(codes(prompt, asks, answer('1')), [])
  assert.deepEqual(codes(prompt, asks, answer('1'), says()), ['EMPTY_ASSISTANT_MESSAGE'])
  assert.deepEqual(codes(prompt, says(text('a'))), [])
})

test('each fault of a history is told once, whoever sends it', async () => {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  const told: string[] = []
  ctx.on('llm/projection', ({ problems }) => void told.push(...problems.map(({ code }) => code)))
  ctx.on('llm/stream', async function* () {})
  const messages = [prompt, says(call('1', 'no json')), prompt]
  const send = async (request: GenerateOptions): Promise<void> => {
    for await (const _ of ctx.llm.stream(request)) assert.fail()
  }
  const request = { provider: 'p', model: 'm', messages }
  await send(markLoopRequest({ ...request }))
  await send(markLoopRequest({ ...request }))
  await send(request)
  assert.deepEqual(told.splice(0), ['ARGUMENTS_NOT_AN_OBJECT', 'UNANSWERED_CALL'])
  await send({ ...request, messages: [{ ...prompt }, says()] })
  assert.deepEqual(told, ['EMPTY_ASSISTANT_MESSAGE'])
})
