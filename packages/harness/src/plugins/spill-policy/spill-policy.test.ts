import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { ContentBlock } from '@dsh/protocol'
import { CallId, textOf } from '@dsh/protocol'
import { defineTool, utf8Length } from '../../core/tools/index.ts'
import { createHarness } from '../../testing/index.ts'
import { note } from '../../testing/bare-tool.ts'
import { fs } from '../fs/index.ts'
import { spillPolicy } from './index.ts'

const max = 400

async function setup(config: { maxInlineBytes?: number; exclude?: string[] } = { maxInlineBytes: max }) {
  const { ctx, agent: create } = await createHarness()
  const plugin = ctx.plugin(spillPolicy, config)
  const failures: unknown[] = []
  ctx.on('internal/error', error => void failures.push(error))
  const agent = create()
  const run = async (content: readonly ContentBlock[] | string, part: object = {}, name = 'work') => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
    const tool = defineTool({
      name,
      description: '',
      parameters: {},
      output: 'content',
      execute: () => blocks,
    })
    const undo = ctx.tools.register(tool)
    const { signal } = new AbortController()
    const call = { callId: CallId('c'), name, arguments: {}, agent, signal, ...part }
    const result = await ctx.tools.execute(call)
    undo()
    return result
  }
  const shown = async (...call: Parameters<typeof run>): Promise<string> =>
    textOf((await run(...call)).content)
  return { ctx, plugin, agent, run, shown, failures }
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const long = `${'a'.repeat(500)}\nmiddle\n${'z'.repeat(500)}\n[exit code: 3]`

test('a text at the limit stays, one byte more is shown as its two ends and kept whole', async () => {
  const { shown, agent } = await setup()
  const fits = 'ü'.repeat(max / 2)
  assert.equal(await shown(fits), fits)
  const preview = await shown(`${fits}x`)
  assert.ok(utf8Length(preview) <= max)
  assert.match(preview, /^ü+\n\[… \d+ bytes left out; read artifact:[0-9a-f]{64} for more …\]\nü+x$/)
  assert.ok(preview.includes(`artifact:${hash(`${fits}x`)} `))
  const kept = await agent.session.artifacts.get(hash(`${fits}x`))
  assert.equal(Buffer.from(kept ?? []).toString(), `${fits}x`)
})

test('the preview counts what is missing, and keeps the end where commands say how they ended', async () => {
  const { shown } = await setup()
  const preview = await shown(long)
  assert.ok(preview.endsWith('z\n[exit code: 3]'))
  const [, omitted = ''] = /… (\d+) bytes left out/.exec(preview) ?? []
  const notice = /\n\[….*…\]\n/.exec(preview)?.[0] ?? ''
  assert.equal(Number(omitted), utf8Length(long) - (utf8Length(preview) - utf8Length(notice)))
  assert.equal(preview.split('left out').length, 2)
})

test('unless told otherwise fifty thousand bytes stay', async () => {
  const { shown } = await setup({})
  assert.equal((await shown('x'.repeat(50_000))).length, 50_000)
  const preview = await shown('x'.repeat(50_001))
  assert.ok(utf8Length(preview) <= 50_000 && preview.includes(' bytes left out; '))
})

test('several blocks of text count as one', async () => {
  const { run } = await setup()
  const blocks = ['a', 'b', 'c'].map(sign => ({ type: 'text', text: sign.repeat(200) }) as const)
  const { content } = await run(blocks)
  assert.equal(content.length, 1)
  assert.match(textOf(content), /^a+\n\[… \d+ bytes.*\]\nc+$/)
})

test('read and bash bound themselves, pictures stay beside the text, and what a program calls is its own affair', async () => {
  const { shown, run } = await setup()
  assert.equal(await shown(long, {}, 'read'), long)
  assert.equal(await shown(long, {}, 'bash'), long)
  assert.equal(await shown(long, { parent: Symbol('outer') }), long)
  const picture = { type: 'image', attachment: { sha256: 'a', mediaType: 'image/png', bytes: 1 } } as const
  const mixed = [{ type: 'text', text: long } as const, picture]
  const { content } = await run(mixed)
  assert.deepEqual([content.length, content[1]], [2, picture])
  assert.equal(textOf(content), await shown(long))
  assert.deepEqual((await run([picture, picture])).content, [picture, picture])
})

test('a long error is bounded like any other text, and stays an error', async () => {
  const { ctx, agent } = await setup()
  const fail = (): never => {
    throw new Error(long)
  }
  ctx.tools.register(defineTool({ name: 'work', description: '', parameters: {}, execute: fail }))
  const { signal } = new AbortController()
  const result = await ctx.tools.execute({ callId: CallId('c'), name: 'work', arguments: {}, agent, signal })
  assert.equal(result.isError, true)
  assert.match(textOf(result.content), /^Error: a+\n\[… \d+ bytes left out/)
})

test('what other policies make of the result is what is bounded, and what they add stays', async () => {
  const { ctx, run, shown } = await setup()
  ctx.on('tools/post-execute', async (_exec, _result, next) => {
    const decision = await next()
    return decision.kind === 'block'
      ? decision
      : { ...decision, content: [{ type: 'text', text: `${long}!` }], additionalContexts: [note('seen')] }
  })
  const result = await run('short')
  assert.ok(textOf(result.content).includes(hash(`${long}!`)))
  assert.deepEqual(result.additionalContexts, [note('seen')])
  ctx.on('tools/post-execute', () => Promise.resolve({ kind: 'block', feedback: long }))
  assert.equal(await shown('short'), long)
})

test('a value that a policy put in is rendered whole', async () => {
  const { ctx, shown } = await setup()
  const value = [{ type: 'text', text: long }]
  ctx.on('tools/post-execute', () => Promise.resolve({ kind: 'accept', value }))
  assert.equal(await shown('short'), long)
})

test('without a session, without room for the notice, or where nothing can be kept the result stays', async () => {
  const { shown, agent, failures } = await setup()
  assert.equal(await shown(long, { agent: undefined }), long)
  const full = { put: () => Promise.reject(new Error('disk full')), get: () => Promise.resolve(undefined) }
  agent.session.artifacts.attach(full)
  assert.equal(await shown(long), long)
  assert.deepEqual(
    failures.map(error => (error as Error).message),
    ['disk full'],
  )
  const { shown: tiny } = await setup({ maxInlineBytes: 20 })
  assert.equal(await tiny(long), long)
})

test('what was left out can be read', async () => {
  const { ctx, agent, shown } = await setup()
  await ctx.plugin(fs)
  const preview = await shown(long)
  const [, name = ''] = /read (artifact:\w+)/.exec(preview) ?? []
  const { signal } = new AbortController()
  const call = { callId: CallId('r'), name: 'read', arguments: { file_path: name, offset: 2 }, agent, signal }
  assert.match(textOf((await ctx.tools.execute(call)).content), /2: middle/)
})

test('a limit that is no positive whole number is refused', async () => {
  const { ctx } = await createHarness()
  for (const maxInlineBytes of [0, -1, 1.5])
    await assert.rejects(async () => ctx.plugin(spillPolicy, { maxInlineBytes }), /maxInlineBytes/)
})

test('without the plugin results stay whole', async () => {
  const { plugin, shown } = await setup()
  await plugin.dispose()
  assert.equal(await shown(long), long)
})
