import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { Message, StreamChunk, ToolSchema } from '@dsh/protocol'
import {
  BlockAssembler,
  createAssistantMessage,
  createToolResultMessage,
  createUserMessage,
  LlmRuntime,
} from '../../core/llm/index.ts'
import { Context } from '../../kernel/index.ts'
import { llmDemo } from './index.ts'

const source = { kind: 'model', provider: 'demo', model: 'demo' } as const
const config = { provider: 'demo', model: 'demo' }
const listing = 'README.md\npackage.json\nsrc/\ntest/'
const manifest = '2: "name": "dsh-sample-workspace",'
const buggy = '8: const sorted = [...values].sort()'
const failing = '# tests 4\n# pass 3\n# fail 1\n[exit code: 1]'
const passing = 'ℹ tests 4\nℹ pass 4\nℹ fail 0'

const tools = ['read', 'edit', 'bash'].map((name): ToolSchema => ({ name, description: '', parameters: {} }))

async function setup() {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  const plugin = ctx.plugin(llmDemo)
  await plugin
  const ask = async (messages: readonly Message[], offered: readonly ToolSchema[] = tools) => {
    const assembler = new BlockAssembler()
    for await (const chunk of ctx.llm.stream({ ...config, messages, tools: offered })) assembler.push(chunk)
    return assembler
  }
  return { ctx, plugin, ask }
}

type Answer = { readonly text: string; readonly isError?: boolean }

/** Runs the script against `world`, which answers each call, until it makes none. */
async function play(world: (name: string, args: Record<string, string>, n: number) => Answer | string) {
  const { ask } = await setup()
  const messages: Message[] = [
    createUserMessage({ content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } }),
  ]
  const calls: string[] = []
  for (;;) {
    const answer = await ask(messages)
    const content = answer.blocks()
    messages.push(createAssistantMessage({ content, source }))
    const made = content.filter(block => block.type === 'tool-call')
    if (made.length === 0)
      return {
        calls,
        text: content.map(block => (block.type === 'text' ? block.text : '')).join(''),
        messages,
      }
    for (const { id, name, arguments: raw } of made) {
      const args = JSON.parse(raw) as Record<string, string>
      calls.push(`${name} ${args['command'] ?? args['file_path']}`)
      const given = world(name, args, calls.length)
      const { text, isError = false } = typeof given === 'string' ? { text: given } : given
      messages.push(createToolResultMessage({ callId: id, content: [{ type: 'text', text }], isError }))
    }
  }
}

function sample(name: string, { file_path: path }: Record<string, string>, n: number): string {
  if (name === 'bash') return n === 3 ? failing : passing
  if (name === 'edit') return 'edited'
  return path === '.' ? listing : path === 'package.json' ? manifest : buggy
}

test('in the sample workspace it tests, reads, edits, tests again and tells the result', async () => {
  const { calls, text } = await play(sample)
  assert.deepEqual(calls, [
    'read .',
    'read package.json',
    'bash node --test --test-reporter=tap',
    'read src/stats.js',
    'edit src/stats.js',
    'bash node --test --test-reporter=tap',
  ])
  assert.match(text, /Before: 3 of 4 tests pass\. Now: 4 of 4 tests pass\./)
  assert.match(text, /I am the demo model/)
})

test('it goes on where a session stopped, from the messages alone', async () => {
  const { messages } = await play(sample)
  const { ask } = await setup()
  const upToTheFirstRun = messages.slice(0, 7)
  const [, next] = (await ask(upToTheFirstRun)).blocks()
  assert.equal(next?.type === 'tool-call' && next.arguments, '{"file_path":"src/stats.js"}')
})

test('a new prompt starts over, and what is fixed is left alone', async () => {
  const { calls, text } = await play((name, args, n) => (name === 'bash' ? passing : sample(name, args, n)))
  assert.deepEqual(calls.at(-1), 'bash node --test --test-reporter=tap')
  assert.match(text, /^There is nothing to fix: 4 of 4 tests pass\./)
})

test('in any other folder it takes one look and says how to get a model', async () => {
  const elsewhere = await play(() => 'notes.txt')
  assert.deepEqual(elsewhere.calls, ['read .'])
  assert.match(
    elsewhere.text,
    /^I am the demo model of dsh, which answers while no key is set\. I looked at the folder/,
  )
  assert.match(elsewhere.text, /export DEEPSEEK_API_KEY=/)
  const project = await play((_, { file_path: path }) => (path === '.' ? listing : '"name": "other"'))
  assert.deepEqual(project.calls, ['read .', 'read package.json'])
  assert.match(project.text, /^I am the demo model/)
})

test('a refused command or edit is told, not repeated', async () => {
  const refused = await play((name, args, n) =>
    name === 'bash' ? { text: 'denied', isError: true } : sample(name, args, n),
  )
  assert.equal(refused.text, 'The tests could not be run: denied')
  const noEdit = await play((name, args, n) =>
    name === 'edit' ? { text: 'denied', isError: true } : sample(name, args, n),
  )
  assert.equal(noEdit.text, 'I found the bug in src/stats.js, but could not fix it: denied')
  assert.equal(noEdit.calls.filter(call => call.startsWith('edit')).length, 1)
})

test('without tools it only explains itself', async () => {
  const { ask } = await setup()
  const prompt = createUserMessage({ content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } })
  const answer = await ask([prompt], [])
  assert.deepEqual(
    answer.blocks().map(({ type }) => type),
    ['text'],
  )
  assert.deepEqual(answer.finish, { kind: 'stop' })
  assert.deepEqual(answer.usage, { inputTokens: 0, outputTokens: 0 })
})

test('calls of another model since the prompt do not confuse it', async () => {
  const { ask } = await setup()
  const callId = CallId('x')
  const block = { type: 'tool-call', id: callId, name: 'read', arguments: '{"file_path": ' } as const
  const history = [
    createUserMessage({ content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } }),
    createAssistantMessage({ content: [block], source }),
    createToolResultMessage({ callId, content: [{ type: 'text', text: 'bad' }], isError: true }),
  ]
  const [, next] = (await ask(history)).blocks()
  assert.equal(next?.type === 'tool-call' && next.arguments, '{"file_path":"."}')
})

test('an aborted request ends as aborted', async () => {
  const { ctx } = await setup()
  const chunks: StreamChunk[] = []
  const options = { ...config, messages: [], signal: AbortSignal.abort(new Error('stop')) }
  for await (const chunk of ctx.llm.stream(options)) chunks.push(chunk)
  assert.deepEqual(
    chunks.map(({ type }) => type),
    ['finish'],
  )
  assert.equal(chunks[0]?.type === 'finish' && chunks[0].reason.kind, 'aborted')
})

test('the demo is listed as a provider as long as its plugin runs', async () => {
  const { ctx, plugin } = await setup()
  assert.deepEqual(ctx.llm.listProviders(), [{ id: 'demo', name: 'Demo' }])
  assert.deepEqual(
    (await ctx.llm.listModels('demo')).map(({ id }) => id),
    ['demo'],
  )
  await plugin.dispose()
  assert.deepEqual(ctx.llm.listProviders(), [])
})
