import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ToolSchema } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { createScope } from '../scope/index.ts'
import { defineTool, ToolRuntime } from '../tools/index.ts'
import { renderContextSnapshot, renderPrompt, SystemPrompt, unlistedTools } from './index.ts'
import type { AssembleContext, SystemPromptConfig } from './index.ts'

function setup(config: SystemPromptConfig = { identity: false }) {
  const ctx = new Context()
  void ctx.plugin(SystemPrompt, config)
  const render = async (context: AssembleContext = {}): Promise<string> =>
    renderPrompt(await ctx.systemPrompt.assemble(context))
  const toolNames = async (context: AssembleContext = {}): Promise<string[]> =>
    (await ctx.systemPrompt.assemble(context)).tools.map(tool => tool.name)
  return { ctx, prompt: ctx.systemPrompt, render, toolNames }
}

function schema(name: string): ToolSchema {
  return { name, description: `Does {{${name}}}`, parameters: { type: 'object' } }
}

const text = (name: string, order: number, content: string) => ({ name, order, text: content })

test('the model is told who it is, in one line', async () => {
  const { render } = setup({})
  assert.equal(
    await render(),
    'You are an AI agent working in dsh, a harness that runs your tools and keeps a log of every step.',
  )
})

test('the plugin needs no config', async () => {
  const ctx = new Context()
  await ctx.plugin(SystemPrompt)
  assert.match(renderPrompt(await ctx.systemPrompt.assemble()), /dsh/)
})

test('a deployment gives a persona, which a scope may replace', async () => {
  const { ctx, render } = setup({ persona: 'You fix bugs.' })
  const scope = {}
  const own = createScope(ctx, scope)
  own.ctx.systemPrompt.section(text('deployment:persona', 0, 'You review.'))
  assert.match(await render(), /^You are .*\n\nYou fix bugs\.$/s)
  assert.match(await render({ scope }), /^You are .*\n\nYou review\.$/s)
  await own.dispose()
  assert.match(await render({ scope }), /You fix bugs\.$/)
})

test('sections stand in their order, equal orders as they were registered', async () => {
  const { prompt, render } = setup()
  prompt.section(text('late', 10, 'late'))
  prompt.section(text('first', 5, 'first'))
  prompt.section(text('second', 5, 'second'))
  prompt.section(text('early', -1, 'early'))
  assert.equal(await render(), 'early\n\nfirst\n\nsecond\n\nlate')
})

test('a section may be made for each request; a hidden one is not asked', async () => {
  const { ctx, prompt, render } = setup()
  const asked: unknown[] = []
  const scope = {}
  prompt.section({ name: 'a', order: 0, text: context => (asked.push(context.scope), 'global') })
  createScope(ctx, scope).ctx.systemPrompt.section({ name: 'a', order: 0, text: async () => 'scoped' })
  assert.equal(await render({ scope }), 'scoped')
  assert.deepEqual(asked, [])
  assert.equal(await render(), 'global')
  assert.deepEqual(asked, [undefined])
})

test('blank sections are left out', async () => {
  const { prompt, render } = setup()
  prompt.section(text('a', 0, 'a'))
  prompt.section(text('b', 1, ' \n'))
  prompt.section(text('c', 2, 'c'))
  assert.equal(await render(), 'a\n\nc')
})

test('taking a registration back is seen by the next assembly', async () => {
  const { prompt, render } = setup()
  const undo = prompt.section(text('a', 0, 'a'))
  const variable = prompt.variable('who', () => 'you')
  const hello = prompt.section(text('b', 1, 'hello {{who}}'))
  assert.equal(await render(), 'a\n\nhello you')
  undo()
  variable()
  await assert.rejects(render(), { code: 'INVALID_VARIABLE' })
  hello()
  assert.equal(await render(), '')
})

test('what a caller does to one assembly is not in the next', async () => {
  const { prompt } = setup()
  prompt.section(text('a', 0, 'a'))
  prompt.context(text('c', 0, 'c'))
  prompt.variable('v', () => 'v')
  prompt.tools(() => ({ schemas: [schema('t')] }))
  const first = await prompt.assemble()
  const before = structuredClone(first)
  for (const list of [first.sections, first.contexts, first.tools]) list.push({} as never)
  for (const part of [...first.sections, ...first.contexts]) part.text = 'changed'
  first.variables['v'] = 'changed'
  assert.deepEqual(await prompt.assemble(), before)
})

test('a section that stands alone is the only one, whatever listeners add', async () => {
  const { ctx, prompt, render } = setup()
  const scope = {}
  let asked = 0
  prompt.section({ name: 'other', order: 0, text: () => (asked++, 'other') })
  createScope(ctx, scope).ctx.systemPrompt.section({
    name: 'whole',
    order: 9,
    text: 'all of it',
    complete: true,
  })
  ctx.on('system-prompt/assemble', async (assembly, _context, next) => {
    assembly.sections.push({ name: 'added', text: 'added' })
    for (const part of assembly.sections) part.text += '!'
    return next()
  })
  assert.equal(await render({ scope }), 'all of it')
  assert.equal(asked, 0)
  assert.equal(await render(), 'other!\n\nadded!')
})

test('two sections that each stand alone are an error', async () => {
  const { prompt, render } = setup()
  prompt.section({ name: 'a', order: 0, text: 'a', complete: true })
  prompt.section({ name: 'b', order: 0, text: 'b', complete: true })
  await assert.rejects(render(), {
    code: 'COMPLETE_CONFLICT',
    message: 'the sections "a" and "b" each claim to stand alone',
  })
})

test('a listener has the last word, and one in a scope over that scope', async () => {
  const { ctx, prompt, render } = setup()
  const scope = {}
  prompt.section(text('a', 0, 'a'))
  createScope(ctx, scope).ctx.on('system-prompt/assemble', async (assembly, _context, next) => ({
    ...(await next()),
    sections: [...assembly.sections, { name: 'b', text: 'b' }],
  }))
  assert.equal(await render({ scope }), 'a\n\nb')
  assert.equal(await render(), 'a')
})

test('a listener that gives no assembly is an error', async () => {
  const { ctx, prompt } = setup()
  ctx.on('system-prompt/assemble', (async () => undefined) as never)
  await assert.rejects(prompt.assemble(), { code: 'PROMPT_FAILED' })
})

test('variables are filled in once, and values are not read again', async () => {
  const { ctx, prompt, render } = setup()
  const scope = {}
  prompt.variable('cwd', () => '/{{model}}')
  prompt.variable('model', async () => "$& $' $1")
  prompt.section(text('a', 0, 'In {{cwd}} with {{model}}.'))
  assert.equal(await render(), "In /{{model}} with $& $' $1.")
  createScope(ctx, scope).ctx.systemPrompt.variable('cwd', () => '/mine')
  assert.equal(await render({ scope }), "In /mine with $& $' $1.")
})

test('braces that nothing closes are text', async () => {
  const { prompt, render } = setup()
  prompt.variable('x', () => 'X')
  prompt.section(text('a', 0, '}} {{x}} } {x} {{ {{x'))
  assert.equal(await render(), '}} X } {x} {{ {{x')
})

test('anything else between braces is an error that names the section', async () => {
  const { prompt } = setup()
  prompt.variable('model', () => 'm')
  prompt.variable('cwd', () => undefined)
  const problem = (content: string): string => {
    try {
      return renderPrompt({
        sections: [{ name: 's', text: content }],
        variables: { model: 'm', cwd: undefined },
      })
    } catch (error) {
      return (error as Error).message
    }
  }
  assert.equal(problem('{{modle}}'), 'variable "modle" in section "s" is unknown; known are model')
  assert.equal(problem('{{cwd}}'), 'variable "cwd" in section "s" has no value now; known are model')
  assert.equal(
    problem('{{constructor}}'),
    'variable "constructor" in section "s" is unknown; known are model',
  )
  assert.equal(problem('{{a.b}}'), 'section "s" has "a.b" between {{ and }}, which names no variable')
  assert.equal(problem('{{ model }}'), 'section "s" has " model " between {{ and }}, which names no variable')
  assert.equal(problem('{{}}'), 'section "s" has "" between {{ and }}, which names no variable')
  assert.equal(
    problem('{{a {{model}}'),
    'section "s" has "a {{model" between {{ and }}, which names no variable',
  )
  await assert.doesNotReject(prompt.assemble())
})

test('text of others is no template: tool descriptions, and parts that say so', async () => {
  const { prompt, render } = setup()
  const foreign = "{{hexagon}} {{a.b}} ${x} <%= %> $'"
  prompt.section({ name: 'server', order: 0, text: foreign, verbatim: true })
  prompt.context({ name: 'branch', order: 0, text: () => foreign, verbatim: true })
  prompt.tools(() => ({ schemas: [{ ...schema('t'), description: foreign }] }))
  assert.equal(await render(), foreign)
  assert.deepEqual(await prompt.renderContexts(), [{ name: 'branch', text: foreign }])
  assert.equal((await prompt.assemble()).tools[0]?.description, foreign)
})

test('a provider that fails is named, and the others are awaited', async () => {
  const { prompt, render } = setup()
  const gate = Promise.withResolvers<string>()
  let settled = false
  prompt.section({
    name: 'broken',
    order: 0,
    text: () => {
      throw new Error('boom')
    },
  })
  prompt.section({ name: 'slow', order: 1, text: () => gate.promise })
  const rendering = render().finally(() => (settled = true))
  rendering.catch(() => {})
  await new Promise(setImmediate)
  assert.equal(settled, false)
  gate.resolve('slow')
  await assert.rejects(rendering, { code: 'PROMPT_FAILED', message: 'section "broken" failed: boom' })
})

test('a provider that gives no text is named', async () => {
  const { prompt } = setup()
  const undo = prompt.section({ name: 'a', order: 0, text: () => 1 as never })
  await assert.rejects(prompt.assemble(), { code: 'PROMPT_FAILED', message: 'section "a" gave no text' })
  undo()
  prompt.variable('v', () => 1 as never)
  await assert.rejects(prompt.assemble(), { code: 'PROMPT_FAILED', message: 'variable "v" gave no text' })
})

test('what an abort throws stays what it is', async () => {
  const { prompt } = setup()
  prompt.section({ name: 'a', order: 0, text: ({ signal }) => (signal?.throwIfAborted(), 'a') })
  const reason = { kind: 'user' }
  await assert.rejects(prompt.assemble({ signal: AbortSignal.abort(reason) }), thrown => thrown === reason)
})

test('runtime contexts are filled in apart, blank ones left out', async () => {
  const { ctx, prompt } = setup()
  const scope = {}
  prompt.variable('cwd', () => '/work')
  prompt.context(text('place', 1, 'In {{cwd}}'))
  prompt.context(text('none', 2, ''))
  prompt.context(text('time', 0, 'noon'))
  const place = { name: 'place', text: 'In /work' }
  assert.deepEqual(await prompt.renderContexts(), [{ name: 'time', text: 'noon' }, place])
  createScope(ctx, scope).ctx.systemPrompt.context(text('time', 0, 'night'))
  assert.deepEqual(await prompt.renderContexts({ scope }), [{ name: 'time', text: 'night' }, place])
  const assembly = await prompt.assemble({ scope })
  assert.deepEqual(
    assembly.contexts.map(context => context.text),
    ['night', 'In {{cwd}}', ''],
  )
  assert.deepEqual((await prompt.assemble({ scope }, { contexts: false })).contexts, [])
})

test('a scope may do without runtime contexts, whatever listeners add', async () => {
  const { ctx, prompt } = setup()
  const scope = {}
  let asked = 0
  prompt.context({ name: 'time', order: 0, text: () => (asked++, 'noon') })
  const undo = createScope(ctx, scope).ctx.systemPrompt.suppressRuntimeContext()
  ctx.on('system-prompt/assemble', async (assembly, _context, next) => {
    assembly.contexts.push({ name: 'added', text: 'added' })
    return next()
  })
  assert.deepEqual((await prompt.assemble({ scope })).contexts, [])
  assert.deepEqual(await prompt.renderContexts({ scope }), [])
  assert.equal(asked, 0)
  undo()
  assert.equal((await prompt.assemble({ scope })).contexts.length, 2)
})

test('the runtime context the model reads supersedes the earlier one', () => {
  assert.equal(
    renderContextSnapshot([{ text: 'noon' }, { text: 'In /work' }]),
    'Current runtime context. It supersedes all earlier runtime context.\n\nnoon\n\nIn /work',
  )
  assert.equal(
    renderContextSnapshot([]),
    'There is no runtime context any more. Disregard all earlier runtime context.',
  )
})

test('half characters do not reach a request', () => {
  assert.equal(renderPrompt({ sections: [{ name: 's', text: 'a\ud800' }], variables: {} }), 'a\ufffd')
  assert.ok(renderContextSnapshot([{ text: '\udc00' }]).endsWith('\ufffd'))
})

test('tools stand in code-unit order, whoever registered them first', async () => {
  const { ctx, prompt, toolNames } = setup()
  await ctx.plugin(ToolRuntime)
  for (const name of ['read', 'Zed', 'bash']) {
    ctx.tools.register(defineTool({ name, description: '', parameters: {}, execute: () => '' }))
  }
  prompt.tools(() => ({ schemas: [schema('glob'), schema('a')] }))
  assert.deepEqual(await toolNames(), ['Zed', 'a', 'bash', 'glob', 'read'])
})

test('without a scope only what counts for everybody is assembled, whoever asks', async () => {
  const { ctx } = setup()
  await ctx.plugin(ToolRuntime)
  const scope = {}
  const own = createScope(ctx, scope).ctx
  own.tools.register(defineTool({ name: 'x', description: '', parameters: {}, execute: () => '' }))
  own.systemPrompt.section(text('a', 0, 'a'))
  const { sections, tools } = await own.systemPrompt.assemble()
  assert.deepEqual([sections, tools], [[], []])
  assert.equal((await ctx.systemPrompt.assemble({ scope })).tools.length, 1)
})

test('a schema stays the same object from one assembly to the next', async () => {
  const { ctx, prompt } = setup()
  await ctx.plugin(ToolRuntime)
  ctx.tools.register(defineTool({ name: 'x', description: '', parameters: {}, execute: () => '' }))
  const [first, second] = [await prompt.assemble(), await prompt.assemble()]
  assert.equal(first.tools[0], second.tools[0])
  assert.equal(first.tools[0], ctx.tools.schemas()[0])
  assert.notEqual(first.tools, second.tools)
})

test('what a provider says of a tool beyond its schema is not sent', async () => {
  const { prompt } = setup()
  const mutable = { ...schema('t'), secret: 'x' }
  prompt.tools(async () => ({ schemas: [mutable] }))
  const { tools } = await prompt.assemble()
  mutable.description = 'changed'
  assert.deepEqual(tools, [schema('t')])
})

test('the nearest, latest provider of a tool counts', async () => {
  const { ctx, prompt } = setup()
  const scope = {}
  const provide = (at: typeof prompt, description: string): void =>
    void at.tools(() => ({ schemas: [{ ...schema('t'), description }] }))
  provide(createScope(ctx, scope).ctx.systemPrompt, 'scoped')
  provide(prompt, 'first')
  provide(prompt, 'second')
  assert.equal((await prompt.assemble({ scope })).tools[0]?.description, 'scoped')
  assert.equal((await prompt.assemble()).tools[0]?.description, 'second')
})

test('an order of tools places those it names, and all others at its mark', async () => {
  const { prompt, toolNames } = setup({
    identity: false,
    toolOrder: ['read', unlistedTools, 'bash', 'hidden'],
  })
  prompt.tools(() => ({
    schemas: ['bash', 'write', 'read', 'edit'].map(schema),
    knownNames: ['hidden'],
  }))
  assert.deepEqual(await toolNames(), ['read', 'edit', 'write', 'bash'])
})

test('an order that names a tool nobody knows is an error, a hidden tool is none', async () => {
  const { ctx, prompt, toolNames } = setup({ identity: false, toolOrder: ['x', unlistedTools] })
  await assert.rejects(prompt.assemble(), {
    code: 'INVALID_TOOL_ORDER',
    message: 'the order of tools names no tool "x"',
  })
  const scope = {}
  await ctx.plugin(ToolRuntime)
  ctx.tools.register(defineTool({ name: 'x', description: '', parameters: {}, execute: () => '' }))
  createScope(ctx, scope).ctx.tools.restrict({ deny: ['x'] })
  assert.deepEqual(await toolNames({ scope }), [])
})

test('tools of the last request keep their places, and what joined comes behind', async () => {
  const { prompt, toolNames } = setup()
  prompt.tools(() => ({ schemas: ['c', 'b', 'a', 'd'].map(schema) }))
  assert.deepEqual(await toolNames({ previousTools: ['d', 'gone', 'b'] }), ['d', 'b', 'a', 'c'])
  const { prompt: ordered, toolNames: orderedNames } = setup({
    identity: false,
    toolOrder: ['c', unlistedTools],
  })
  ordered.tools(() => ({ schemas: ['c', 'b', 'a', 'd'].map(schema) }))
  assert.deepEqual(await orderedNames({ previousTools: ['d', 'c'] }), ['c', 'd', 'a', 'b'])
})

test('a config that cannot be used is refused when the plugin is mounted', async () => {
  const problem = async (config: object): Promise<string> => {
    try {
      await new Context().plugin(SystemPrompt, config)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const start = 'config of plugin "SystemPrompt" is not valid: '
  assert.equal(
    await problem({ toolOrder: ['a'] }),
    `${start}toolOrder: the order of tools lacks "<unlisted-tools>"`,
  )
  assert.equal(
    await problem({ toolOrder: ['a', unlistedTools, 'a'] }),
    `${start}toolOrder: the order of tools names "a" twice`,
  )
  assert.equal(
    await problem({ persona: 1, identity: 'no', personna: 'x' }),
    `${start}persona: is no text; identity: is not true or false; personna: is no setting; did you mean "persona"?`,
  )
})

test('what could not be assembled is refused when it is registered', () => {
  const { prompt } = setup()
  assert.throws(() => prompt.section(text('a', NaN, '')), /order of section "a" is NaN/)
  assert.throws(() => prompt.section({ name: 'a', order: 0, text: 1 as never }), /section "a" has no text/)
  assert.throws(() => prompt.context(text('', 0, '')), /a context needs a name/)
  for (const name of ['Model', 'a-b', '1a', '', '__proto__']) {
    assert.throws(() => prompt.variable(name, () => ''), TypeError)
  }
  prompt.section(text('a', 0, ''))
  assert.throws(() => prompt.section(text('a', 0, '')), { code: 'DUPLICATE_NAME' })
  prompt.variable('constructor', () => 'x')
})

test('every registration tells a change, and a listener may refuse what is added', async () => {
  const { ctx, prompt, render } = setup()
  let told = 0
  ctx.on('system-prompt/change', () => void told++)
  const undo = [
    prompt.section(text('a', 0, 'a')),
    prompt.context(text('a', 0, 'a')),
    prompt.variable('a', () => 'a'),
    prompt.tools(() => ({ schemas: [] })),
    prompt.suppressRuntimeContext(),
  ]
  for (const take of undo) take()
  assert.equal(told, 10)
  ctx.on('system-prompt/change', () => {
    throw new Error('not now')
  })
  assert.throws(() => prompt.section(text('a', 0, 'a')), /not now/)
  assert.equal(await render(), '')
})

test('a plugin that goes takes along what it said', async () => {
  const { ctx, render } = setup()
  const plugin = ctx.plugin(own => void own.systemPrompt.section(text('a', 0, 'a')))
  await plugin
  assert.equal(await render(), 'a')
  await plugin.dispose()
  assert.equal(await render(), '')
})
