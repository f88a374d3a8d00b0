import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CallId } from '@dsh/protocol'
import type { ContentBlock, FinishReason, JsonValue, ReplayState, StreamChunk } from '@dsh/protocol'
import { BlockAssembler } from './index.ts'

const start = (index: number, blockType: ContentBlock['type']): StreamChunk => ({
  type: 'block-start',
  index,
  blockType,
})
const delta = (index: number, text: string): StreamChunk => ({ type: 'text-delta', index, text })
const thought = (index: number, text: string): StreamChunk => ({ type: 'reasoning-delta', index, text })
const args = (index: number, argumentsDelta: string, id = '', name?: string): StreamChunk => ({
  type: 'tool-call-delta',
  index,
  id: CallId(id),
  ...(name === undefined ? {} : { name }),
  argumentsDelta,
})
const end = (index: number, block: ContentBlock): StreamChunk => ({ type: 'block-end', index, block })
const finish = (kind: 'stop' | 'max-tokens' | 'tool-calls', replayState?: ReplayState): StreamChunk => ({
  type: 'finish',
  reason: { kind },
  ...(replayState === undefined ? {} : { replayState }),
})
const say = (text: string): ContentBlock => ({ type: 'text', text })
const call = (id: string, name = 'read', raw = '{}'): ContentBlock => ({
  type: 'tool-call',
  id: CallId(id),
  name,
  arguments: raw,
})

function assemble(...chunks: readonly StreamChunk[]): BlockAssembler {
  const assembler = new BlockAssembler()
  for (const chunk of chunks) assembler.push(chunk)
  return assembler
}

test('deltas become the block they belong to, in order of first sight', () => {
  const assembler = assemble(
    start(1, 'reasoning'),
    thought(1, 'let me '),
    start(0, 'text'),
    delta(0, 'Hel'),
    thought(1, 'see'),
    delta(0, 'lo'),
    start(2, 'tool-call'),
    args(2, '{"a"', 'c1', 'read'),
    args(2, ':1}'),
  )
  assert.deepEqual(assembler.blocks(), [
    { type: 'reasoning', text: 'let me see' },
    say('Hello'),
    call('c1', 'read', '{"a":1}'),
  ])
})

test('a finished answer gives its usage, reason and blocks, however often it is asked', () => {
  const usage = { inputTokens: 3, outputTokens: 1 }
  const assembler = assemble(
    start(0, 'text'),
    delta(0, 'x'),
    end(0, say('x')),
    { type: 'usage', usage },
    finish('stop'),
  )
  assert.deepEqual(assembler.blocks(), [say('x')])
  assert.deepEqual(assembler.blocks(), assembler.blocks())
  assert.deepEqual([assembler.usage, assembler.finish], [usage, { kind: 'stop' }])
})

test('a stream without a finish counts as stopped', () => {
  assert.deepEqual(assemble(delta(0, 'x')).finish, { kind: 'stop' })
  assert.equal(assemble().usage, undefined)
})

test('a delta without a start opens its block', () => {
  const assembler = assemble(delta(3, 'a'), thought(1, 'b'), args(0, '{}', 'c', 'read'))
  assert.deepEqual(assembler.blocks(), [say('a'), { type: 'reasoning', text: 'b' }, call('c')])
})

test('stragglers behind an end, second starts and ends, and deltas of another type change nothing', () => {
  const assembler = assemble(
    start(0, 'text'),
    delta(0, 'kept'),
    start(0, 'reasoning'),
    thought(0, 'no'),
    end(0, say('kept')),
    delta(0, 'late'),
    end(0, say('second')),
    start(0, 'text'),
  )
  assert.deepEqual(assembler.blocks(), [say('kept')])
})

test('nothing behind the finish counts', () => {
  const assembler = assemble(
    finish('stop'),
    delta(0, 'late'),
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } },
    finish('max-tokens'),
  )
  assert.deepEqual([assembler.blocks(), assembler.usage, assembler.finish], [[], undefined, { kind: 'stop' }])
})

test('the block of an end replaces what its deltas said', () => {
  assert.deepEqual(assemble(delta(0, 'par'), end(0, say('whole'))).blocks(), [say('whole')])
  assert.deepEqual(assemble(end(0, say('alone'))).blocks(), [say('alone')])
})

test('a call without an id gets one that is the same each time and unlike any other', () => {
  const open = assemble(args(0, '{}', '', 'read'), args(1, '{}', '', 'read'))
  const closed = assemble(start(0, 'tool-call'), end(0, call('')))
  const ids = [...open.blocks(), ...closed.blocks()].map(block => block.type === 'tool-call' && block.id)
  assert.equal(new Set(ids).size, 3)
  for (const id of ids) assert.match(String(id), /^call_[0-9a-f-]{36}$/)
  assert.deepEqual(open.blocks(), open.blocks())
  assert.deepEqual(closed.blocks(), closed.blocks())
})

test('the first id and the first name of a call stay', () => {
  const assembler = assemble(args(0, '', '', ''), args(0, '{', 'c1', 'read'), args(0, '}', 'c2', 'write'))
  assert.deepEqual(assembler.blocks(), [call('c1')])
})

test('a block that was begun and left empty is nothing; an ended one is what its end says', () => {
  assert.deepEqual(assemble(start(0, 'text'), start(1, 'reasoning'), finish('stop')).blocks(), [])
  assert.deepEqual(assemble(end(0, { type: 'reasoning', text: '' })).blocks(), [
    { type: 'reasoning', text: '' },
  ])
})

test('a block of a type that only its end can give must be ended', () => {
  const chart = { type: 'chart', rows: [1] } as unknown as ContentBlock
  assert.throws(() => assemble(start(0, 'chart' as 'text')).blocks(), {
    code: 'OPEN_BLOCK',
    message: /"chart"/,
  })
  assert.deepEqual(assemble(start(0, 'chart' as 'text'), end(0, chart)).blocks(), [chart])
})

test('an answer that hit the output limit has no tool calls, and says how many there were', () => {
  const assembler = assemble(
    end(0, say('a')),
    end(1, call('c')),
    args(2, '{"half', 'd', 'read'),
    finish('max-tokens'),
  )
  assert.deepEqual(assembler.blocks(), [say('a')])
  assert.equal(assembler.truncatedToolCalls, 2)
  assert.equal(assemble(end(0, call('c')), finish('tool-calls')).truncatedToolCalls, 0)
})

test('the adapter’s notes go along as long as they fit the blocks', () => {
  const two: readonly StreamChunk[] = [end(0, say('a')), end(1, call('c'))]
  const replay = (kind: 'stop' | 'max-tokens', state: ReplayState): ReplayState | undefined =>
    assemble(...two, finish(kind, state)).replayState
  const fitting = { response: 'r', blocks: ['x', 'y'] }
  assert.deepEqual(replay('stop', fitting), fitting)
  assert.deepEqual(replay('max-tokens', fitting), { response: 'r', blocks: ['x'] })
  assert.equal(replay('stop', { response: 'r', blocks: ['x'] }), undefined)
  assert.equal(replay('max-tokens', { response: 'r', blocks: ['x'] }), undefined)
  assert.deepEqual(replay('stop', { response: 'r' }), { response: 'r' })
  assert.deepEqual(replay('max-tokens', { response: 'r' }), { response: 'r' })
  assert.equal(assemble(...two, finish('stop')).replayState, undefined)
})

test('the message is the blocks with the route, and the notes only where there are some', () => {
  const source = { provider: 'p', model: 'm', replayState: { response: 'not ours' } }
  const plain = assemble(end(0, say('a')), finish('stop')).message(source)
  assert.deepEqual(
    [plain.role, plain.content, plain.source],
    ['assistant', [say('a')], { kind: 'model', provider: 'p', model: 'm' }],
  )
  const noted = assemble(end(0, say('a')), finish('stop', { response: 1 })).message(source)
  assert.deepEqual(noted.source.replayState, { response: 1 })
  assert.ok(Object.isFrozen(noted.source))
})

test('of an interrupted answer stays the text and reasoning that could be seen', () => {
  const assembler = assemble(
    end(0, { type: 'reasoning', text: 'why' }),
    end(1, say('  \n')),
    start(2, 'text'),
    delta(2, 'par'),
    end(3, call('c')),
    args(4, '{"half', 'd', 'read'),
    start(5, 'text'),
    start(6, 'chart' as 'text'),
  )
  assert.deepEqual(assembler.interruptedBlocks(), [{ type: 'reasoning', text: 'why' }, say('par')])
})

test('however the deltas of blocks are mixed, each block is its own deltas joined', () => {
  const kinds = fc.constantFrom('text', 'reasoning', 'tool-call')
  const blocks = fc.array(fc.record({ kind: kinds, parts: fc.array(fc.string(), { minLength: 1 }) }), {
    maxLength: 5,
  })
  const plan = blocks.chain(list =>
    fc.tuple(
      fc.constant(list),
      fc.shuffledSubarray(
        list.flatMap((block, index) => block.parts.map(() => index)),
        { minLength: list.flatMap(block => block.parts).length },
      ),
    ),
  )
  fc.assert(
    fc.property(plan, ([list, order]) => {
      const assembler = new BlockAssembler()
      const next = list.map(() => 0)
      for (const index of order) {
        const { kind, parts } = list[index] as (typeof list)[number]
        const at = next[index] as number
        next[index] = at + 1
        const part = parts[at] as string
        if (kind === 'text') assembler.push(delta(index, part))
        else if (kind === 'reasoning') assembler.push(thought(index, part))
        else assembler.push(args(index, part, `id${index}`, 'read'))
      }
      const expected = [...new Set(order)].flatMap((index): ContentBlock[] => {
        const { kind, parts } = list[index] as (typeof list)[number]
        const joined = parts.join('')
        if (kind === 'tool-call') return [call(`id${index}`, 'read', joined)]
        return joined === '' ? [] : [{ type: kind, text: joined } as ContentBlock]
      })
      assert.deepEqual(assembler.blocks(), expected)
      assert.deepEqual(assembler.blocks(), expected)
    }),
  )
})

test('reasons of plugins pass as they are', () => {
  const reason = { kind: 'filtered', why: 'x' } as unknown as FinishReason
  assert.deepEqual(assemble({ type: 'finish', reason }).finish, reason as unknown as JsonValue)
})
