import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, textOf } from './index.ts'
import type { ContentBlock } from './index.ts'

test('the text of a message is its text blocks, and nothing stands for the others', () => {
  const content: readonly ContentBlock[] = [
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'a' },
    { type: 'tool-call', id: CallId('c'), name: 'tool', arguments: '{}' },
    { type: 'image', attachment: { sha256: '0', mediaType: 'image/png', bytes: 1 } },
    { type: 'text', text: 'b' },
  ]
  assert.equal(textOf(content), 'ab')
  assert.equal(textOf(content, '\n'), 'a\nb')
  assert.equal(textOf([], '\n'), '')
})
