import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { ContentBlock } from '@dsh/protocol'
import { createAssistantMessage, createMessage, createToolResultMessage, createUserMessage } from './index.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('each message gets an id of its own', () => {
  const parts = { content: [], source: { kind: 'user' } } as const
  const first = createUserMessage(parts)
  assert.match(first.id, uuid)
  assert.notEqual(createUserMessage(parts).id, first.id)
})

test('a message is detached from what it was made of, and frozen all through', () => {
  const block = { type: 'text', text: 'hi' }
  const message = createUserMessage({ content: [block as ContentBlock], source: { kind: 'user' } })
  block.text = 'changed'
  assert.deepEqual(message.content, [{ type: 'text', text: 'hi' }])
  assert.ok(Object.isFrozen(message) && Object.isFrozen(message.content))
  assert.throws(() => Object.assign(message.content[0] as object, { text: 'x' }), TypeError)
})

test('a message gets the role and the source of its maker', () => {
  const source = { kind: 'model', provider: 'p', model: 'm' } as const
  const { id: _id, ...assistant } = createAssistantMessage({ content: [], source })
  assert.deepEqual(assistant, { role: 'assistant', content: [], source })
  const { id: _other, ...system } = createMessage({ role: 'system', content: [], source: { kind: 'user' } })
  assert.deepEqual(system, { role: 'system', content: [], source: { kind: 'user' } })
})

test('a tool result is one block of a user message that names its call', () => {
  const content = [{ type: 'text', text: 'done' }] as const
  const { id: _id, ...failed } = createToolResultMessage({ callId: CallId('c'), content, isError: true })
  assert.deepEqual(failed, {
    role: 'user',
    content: [{ type: 'tool-result', toolCallId: 'c', content, isError: true }],
    source: { kind: 'tool', callId: 'c' },
  })
  const succeeded = createToolResultMessage({ callId: CallId('c'), content })
  assert.ok(!('isError' in succeeded.content[0]))
})

test('what JSON would lose is refused by its path', () => {
  const content = [{ type: 'text', text: undefined }] as unknown as readonly ContentBlock[]
  assert.throws(
    () => createUserMessage({ content, source: { kind: 'user' } }),
    /content\[0\]\.text is undefined/,
  )
})
