import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { toolSearch } from './index.ts'

async function setup(...script: ScriptEntry[]) {
  const { ctx, adapter, agent: create } = await createHarness(script)
  const plugin = ctx.plugin(toolSearch)
  const agent = create()
  const add = (name: string, description: string) =>
    ctx.tools.register(
      defineTool({ name, description, parameters: {}, deferred: true, execute: () => `${name} ran` }),
    )
  const run = async (): Promise<string[]> => {
    agent.followup(say('go'))
    await agent.whenIdle()
    return agent.session.events.flatMap(event => {
      if (event.type !== 'tool/result') return []
      const [{ content }] = event.data.message.content
      return content.map(block => (block.type === 'text' ? block.text : block.type))
    })
  }
  const sent = (): string[] =>
    adapter.requests.map(({ tools = [] }) => tools.map(({ name }) => name).join(' '))
  return { ctx, plugin, agent, adapter, add, run, sent }
}

test('what the search finds is told in a line each and joins the next request', async () => {
  const { add, run, sent } = await setup(toolCall('tool_search', { query: 'fetch a page' }), text('a'))
  add('web_fetch', 'Fetch a page\nas Markdown.')
  add('task_kill', 'End a background command.')
  add('web_search', 'Search the web for pages.')
  assert.deepEqual(await run(), [
    'web_fetch: Fetch a page as Markdown.\nweb_search: Search the web for pages.',
  ])
  assert.deepEqual(sent(), ['tool_search', 'tool_search web_fetch web_search'])
})

test('a whole name is the best match, then words of names, then words of descriptions', async () => {
  const { add, run } = await setup(toolCall('tool_search', { query: 'lsp symbols' }), text('a'))
  add('a_symbols', 'Nothing.')
  add('b', 'Finds symbols.')
  add('lsp', 'Nothing at all.')
  const [found = ''] = await run()
  assert.deepEqual(
    found.split('\n').map(line => line.split(':')[0]),
    ['lsp', 'a_symbols', 'b'],
  )
})

test('a search that is too wide brings the best eight and says how many more there are', async () => {
  const { add, run, sent } = await setup(toolCall('tool_search', { query: 'mcp' }), text('a'))
  for (let index = 10; index < 22; index++) add(`mcp__s__t${index}`, 'x')
  const [found = ''] = await run()
  assert.equal(found.split('\n').length, 9)
  assert.ok(found.endsWith('\n4 more match; search for fewer words'))
  assert.equal(sent()[1]?.split(' ').length, 9)
})

test('a search that finds nothing lists the names and brings none', async () => {
  const { add, run, sent } = await setup(toolCall('tool_search', { query: 'quantum' }), text('a'))
  add('web_fetch', 'Fetch a page.')
  add('lsp', 'Look up symbols.')
  assert.deepEqual(await run(), ['No tool matches. There are: lsp, web_fetch'])
  assert.deepEqual(sent(), ['tool_search', 'tool_search'])
})

test('where nothing is deferred there is no search', async () => {
  const { run, sent } = await setup(text('a'))
  await run()
  assert.deepEqual(sent(), [''])
})

test('a description of others is no template and no more than one line', async () => {
  const { add, run } = await setup(toolCall('tool_search', { query: 'odd' }), text('a'))
  const foreign = `{{hexagon}} {{a.b}} \${x} <%= y %> $' odd\r\n\r\nsecond ${'word '.repeat(100)}`
  add('mcp__odd', foreign)
  const [found = ''] = await run()
  assert.ok(found.startsWith("mcp__odd: {{hexagon}} {{a.b}} ${x} <%= y %> $' odd second word"))
  assert.ok(!found.includes('\n') && Buffer.byteLength(found) <= 160)
})

test('three hundred deferred tools cost a request nothing, and a search of them joins at most eight', async () => {
  const { add, run, adapter, sent } = await setup(toolCall('tool_search', { query: 'server' }), text('a'))
  for (let index = 0; index < 300; index++) add(`mcp__server__t${index}`, 'long '.repeat(80))
  await run()
  assert.ok(JSON.stringify(adapter.requests[0]?.tools).length < 400)
  assert.equal(sent()[1]?.split(' ').length, 9)
})

test('the tool goes with its plugin', async () => {
  const { ctx, plugin, add, run, sent } = await setup(text('a'))
  add('lsp', 'Look up symbols.')
  await plugin.dispose()
  await run()
  assert.deepEqual(sent(), [''])
  assert.equal(ctx.tools.get('tool_search'), undefined)
})

test('what the model is told of the search', async () => {
  const { add, run, adapter } = await setup(text('a'))
  add('lsp', 'Look up symbols.')
  await run()
  assert.deepEqual(adapter.requests[0]?.tools, [
    {
      name: 'tool_search',
      description: 'Find more tools by what they do. Those it finds are yours from the next step on.',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string', description: 'words, or a name' } },
        required: ['query'],
      },
    },
  ])
})
