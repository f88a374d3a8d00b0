import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { createScope } from '../scope/index.ts'
import { codeToolName, defineTool, ToolRuntime } from './index.ts'
import type { ToolDefinition, ToolExecutionInput } from './index.ts'

function setup() {
  const ctx = new Context()
  void ctx.plugin(ToolRuntime)
  const signal = new AbortController().signal
  const call = (name: string, agent?: object): ToolExecutionInput =>
    ({
      callId: CallId('c1'),
      name,
      arguments: {},
      signal,
      ...(agent === undefined ? {} : { agent }),
    }) as ToolExecutionInput
  const names = (scope?: object): string[] => ctx.tools.schemas(scope).map(schema => schema.name)
  const text = async (name: string, agent?: object): Promise<unknown> => {
    const [block] = (await ctx.tools.execute(call(name, agent))).content
    return block?.type === 'text' ? block.text : block
  }
  return { ctx, call, names, text }
}

function tool(name: string, says = name, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    ...defineTool({ name, description: `Says ${says}`, parameters: {}, execute: () => says }),
    ...more,
  }
}

test('a model is told name, description and parameters, and nothing else of a tool', () => {
  const { ctx } = setup()
  ctx.tools.register(tool('b', 'b', { timeoutMs: 5, isConcurrencySafe: () => true }))
  ctx.tools.register(tool('a'))
  assert.deepEqual(ctx.tools.schemas(), [
    { name: 'a', description: 'Says a', parameters: { type: 'object', properties: {} } },
    { name: 'b', description: 'Says b', parameters: { type: 'object', properties: {} } },
  ])
})

test('schemas are frozen, and the same objects until something changes', () => {
  const { ctx } = setup()
  const parameters = { type: 'object', properties: { path: { type: 'string' } } }
  ctx.tools.register({ ...tool('read'), parameters })
  const before = ctx.tools.schemas()
  assert.equal(ctx.tools.schemas(), before)
  assert.throws(() => Object.assign(before[0]?.parameters ?? {}, { extra: 1 }), TypeError)
  parameters.type = 'changed by its owner'
  assert.equal(before[0]?.parameters['type'], 'object')
  ctx.tools.register(tool('write'))
  assert.equal(ctx.tools.schemas().length, 2)
  assert.equal(ctx.tools.schemas()[0], before[0])
})

test('the definition that was registered is found again, also under the names of prototypes', () => {
  const { ctx } = setup()
  for (const name of ['__proto__', 'constructor', 'toString']) {
    const definition = tool(name)
    assert.equal(ctx.tools.get(name), undefined)
    ctx.tools.register(definition)
    assert.equal(ctx.tools.get(name), definition)
  }
})

test('two agents have tools of one name with different bodies, and ending one takes away only its own', async () => {
  const { ctx, text } = setup()
  const [first, second] = [{}, {}]
  const scope = createScope(ctx, first)
  ctx.tools.register(tool('x', 'for all'))
  scope.ctx.tools.register(tool('x', 'for the first'))
  createScope(ctx, second).ctx.tools.register(tool('x', 'for the second'))
  const answers = async (): Promise<unknown[]> => [
    await text('x', first),
    await text('x', second),
    await text('x'),
  ]
  assert.deepEqual(await answers(), ['for the first', 'for the second', 'for all'])
  await scope.dispose()
  assert.deepEqual(await answers(), ['for all', 'for the second', 'for all'])
})

test('a name is taken once in a layer', () => {
  const { ctx } = setup()
  const undo = ctx.tools.register(tool('x'))
  assert.throws(() => ctx.tools.register(tool('x')), { code: 'DUPLICATE_NAME' })
  undo()
  ctx.tools.register(tool('x'))
})

test('a plugin that goes takes its tools, guards and restrictions along', async () => {
  const { ctx, names, text } = setup()
  const key = {}
  ctx.tools.register(tool('kept'))
  const scope = createScope(ctx, key)
  const plugin = scope.ctx.plugin(own => {
    own.tools.register(tool('own'))
    own.tools.restrict({ deny: ['kept'] })
    own.tools.guard(() => 'never')
  })
  await plugin
  assert.deepEqual(names(key), ['own'])
  assert.equal(await text('own', key), 'Error: never')
  await plugin.dispose()
  assert.deepEqual(names(key), ['kept'])
  assert.equal(await text('kept', key), 'kept')
})

test('a change is told after it happened, and a listener may refuse what is added', () => {
  const { ctx, names } = setup()
  const seen: string[][] = []
  ctx.on('tools/change', () => void seen.push(names()))
  const undo = ctx.tools.register(tool('x'))
  undo()
  assert.deepEqual(seen, [['x'], []])
  const stop = ctx.on('tools/change', () => {
    throw new Error('not now')
  })
  assert.throws(() => ctx.tools.register(tool('x')), /not now/)
  assert.deepEqual(names(), [])
  stop()
})

test('a removal reaches every listener, whatever one of them throws', () => {
  const { ctx } = setup()
  const undo = ctx.tools.register(tool('x'))
  let told = 0
  ctx.on('tools/change', () => {
    throw new Error('no')
  })
  ctx.on('tools/change', () => void told++)
  undo()
  assert.equal(told, 1)
  assert.equal(ctx.tools.get('x'), undefined)
})

test('a tool that could not be used is refused when it is registered', () => {
  const { ctx } = setup()
  const refuse = (part: object, message: RegExp): void =>
    assert.throws(() => ctx.tools.register({ ...tool('x'), ...part }), message)
  refuse({ name: 'a.b' }, /the tool name "a\.b" is not 1 to 64 letters, digits, "_" and "-"/)
  refuse({ name: 'x'.repeat(65) }, /is not 1 to 64/)
  refuse({ name: codeToolName }, /"run_code" is reserved/)
  refuse({ output: undefined }, /tool "x" has no output with a render function/)
  refuse({ execute: 1 }, /tool "x" has no execute function/)
  refuse({ description: undefined }, /tool "x" has no description/)
  for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 31]) refuse({ timeoutMs }, /timeoutMs of tool "x"/)
  refuse({ parameters: { a: undefined } }, /tool "x"\.parameters\.a is undefined/)
  refuse(
    { output: { schema: { type: 'string', format: 'date' }, render: () => [] } },
    /unknown keyword "format"/,
  )
})

test('a tool whose schema fails is left out, and the others stay', () => {
  const { ctx, names } = setup()
  const errors: unknown[] = []
  ctx.on('internal/error', error => void errors.push(error))
  ctx.tools.register(tool('good'))
  const broken = Object.defineProperty(tool('bad'), 'parameters', {
    get: () => {
      throw new Error('no schema')
    },
    enumerable: true,
  })
  ctx.tools.register(broken)
  assert.deepEqual(names(), ['good'])
  assert.match(String(errors[0]), /no schema/)
})

test('a restriction narrows what a scope inherits and spares its own tools', () => {
  const { ctx, names } = setup()
  const [parent, child] = [{}, {}]
  for (const name of ['bash', 'read', 'write']) ctx.tools.register(tool(name))
  const above = createScope(ctx, parent).ctx
  const below = createScope(ctx, child, { parent }).ctx
  above.tools.register(tool('report'))
  above.tools.restrict({ deny: ['bash'] })
  assert.deepEqual(names(parent), ['read', 'report', 'write'])
  assert.deepEqual(names(child), ['read', 'report', 'write'])
  below.tools.register(tool('bash', 'my own'))
  below.tools.restrict({ allow: ['read', 'write', 'report'] })
  below.tools.restrict({ deny: ['write'] })
  assert.deepEqual(names(child), ['bash', 'read', 'report'])
  assert.equal(ctx.tools.get('bash', child)?.description, 'Says my own')
  assert.deepEqual(names(), ['bash', 'read', 'write'])
})

test('a scope may replace a tool that it restricts', () => {
  const { ctx } = setup()
  const key = {}
  ctx.tools.register(tool('x', 'all'))
  const scope = createScope(ctx, key).ctx
  scope.tools.restrict({ allow: [] })
  assert.equal(ctx.tools.get('x', key), undefined)
  scope.tools.register(tool('x', 'own'))
  assert.equal(ctx.tools.get('x', key)?.description, 'Says own')
})

test('tools that come later pass a deny list, and not an allow list', () => {
  const { ctx, names } = setup()
  const [open, closed] = [{}, {}]
  ctx.tools.register(tool('a'))
  createScope(ctx, open).ctx.tools.restrict({ deny: ['a'] })
  createScope(ctx, closed).ctx.tools.restrict({ allow: ['a'] })
  ctx.tools.register(tool('later'))
  assert.deepEqual(names(open), ['later'])
  assert.deepEqual(names(closed), ['a'])
})

test('a restriction names what the scope inherits, or is refused', () => {
  const { ctx } = setup()
  ctx.tools.register(tool('a'))
  const scope = createScope(ctx, {}).ctx
  scope.tools.register(tool('own'))
  const refuse = (restriction: object, message: RegExp): void => {
    assert.throws(() => scope.tools.restrict(restriction), { code: 'INVALID_TOOL', message })
  }
  refuse({}, /restricts nothing/)
  refuse({ deny: [] }, /restricts nothing/)
  refuse({ allow: ['a', 'b'] }, /names "b", which the scope does not inherit/)
  refuse({ deny: ['own', codeToolName] }, /names "own", "run_code"/)
  ctx.tools.transport(tool(codeToolName))
  refuse({ deny: [codeToolName] }, /names "run_code"/)
  assert.throws(() => ctx.tools.restrict({ allow: ['a'] }), /only a scoped context/)
})

test('a call runs beside others only where its tool says exactly true', () => {
  const { ctx, call } = setup()
  const classify = (name: string, isConcurrencySafe: () => boolean): void =>
    void ctx.tools.register({ ...tool(name), isConcurrencySafe })
  classify('yes', () => true)
  classify('no', () => false)
  classify('truthy', () => 1 as unknown as boolean)
  classify('throws', () => {
    throw new Error('no')
  })
  ctx.tools.register(tool('undeclared'))
  const modes = ['yes', 'no', 'truthy', 'throws', 'undeclared', 'unknown'].map(name =>
    ctx.tools.executionMode(call(name)),
  )
  assert.deepEqual(modes, ['parallel', 'exclusive', 'exclusive', 'exclusive', 'exclusive', 'exclusive'])
})

test('a call with arguments that do not fit, or to a hidden tool, runs alone', () => {
  const { ctx, call } = setup()
  const key = {}
  ctx.tools.register(
    defineTool({
      name: 'read',
      description: 'Reads',
      parameters: { path: { type: 'string', required: true } },
      execute: () => '',
      isConcurrencySafe: () => true,
    }),
  )
  const mode = (args: object, agent?: object): string =>
    ctx.tools.executionMode({ ...call('read', agent), arguments: args })
  assert.equal(mode({ path: 'a' }), 'parallel')
  assert.equal(mode({}), 'exclusive')
  createScope(ctx, key).ctx.tools.restrict({ deny: ['read'] })
  assert.equal(mode({ path: 'a' }, key), 'exclusive')
})

test('a program is offered in place of the tools, or beside them, where that is asked for', async () => {
  const { ctx, call, names, text } = setup()
  const key = {}
  ctx.tools.register(tool('read', 'read', { isConcurrencySafe: () => true }))
  const scope = createScope(ctx, key).ctx
  assert.throws(() => scope.tools.presentAs('code'), /nobody provides "run_code"/)
  const undo = ctx.tools.transport(tool(codeToolName, 'ran'))
  assert.deepEqual(names(key), ['read'])
  assert.equal(await text(codeToolName, key), 'Error: unknown tool "run_code"; the tools are read')
  scope.tools.presentAs('both')
  assert.deepEqual(names(key), ['read', 'run_code'])
  const code = scope.tools.presentAs('code')
  assert.deepEqual(names(key), ['run_code'])
  assert.deepEqual(names(), ['read'])
  const asked: string[] = []
  ctx.on('tools/pre-execute', ({ name }, next) => (asked.push(name), next()))
  ctx.on('tools/post-execute', ({ name }, _result, next) => (asked.push(name), next()))
  assert.equal(await text('read', key), 'Error: tool "read" can be called from a program only: call run_code')
  assert.deepEqual(asked, [])
  const calls = [call('read', key), { ...call('read', key), parent: Symbol('run') }, call('read')]
  assert.deepEqual(
    calls.map(each => ctx.tools.executionMode(each)),
    ['exclusive', 'parallel', 'parallel'],
  )
  assert.equal(await text(codeToolName, key), 'ran')
  assert.deepEqual([...ctx.tools.knownNames(key)], ['read', 'run_code'])
  undo()
  assert.deepEqual(names(key), ['read'])
  assert.equal(await text('read', key), 'read')
  ctx.tools.transport(tool(codeToolName, 'ran'))
  code()
  assert.deepEqual(names(key), ['read', 'run_code'])
})

test('only the program has its name, and tools are offered in one of three ways', () => {
  const { ctx } = setup()
  assert.throws(() => ctx.tools.transport(tool('read')), {
    code: 'INVALID_TOOL',
    message: 'the composite is named "run_code", not "read"',
  })
  const composite = tool(codeToolName)
  ctx.tools.transport(composite)
  assert.throws(() => ctx.tools.presentAs('codes' as never), {
    code: 'INVALID_TOOL',
    message: 'tools cannot be presented as "codes"',
  })
  assert.equal(ctx.tools.get(codeToolName), undefined)
  const undo = ctx.tools.presentAs('code')
  assert.equal(ctx.tools.get(codeToolName), composite)
  undo()
  assert.equal(ctx.tools.get(codeToolName), undefined)
})

test('a program calls the tools themselves, but no program', async () => {
  const { ctx, call } = setup()
  ctx.tools.register(tool('read'))
  ctx.tools.transport(tool(codeToolName))
  ctx.tools.presentAs('code')
  const nested = async (name: string): Promise<boolean> =>
    (await ctx.tools.execute({ ...call(name), parent: Symbol('run') })).isError
  assert.equal(await nested('read'), false)
  assert.equal(await nested(codeToolName), true)
})

test('whoever asks without naming a scope is asking for its own', () => {
  const { ctx } = setup()
  const scope = createScope(ctx, {}).ctx
  const own = tool('own')
  scope.tools.register(own)
  assert.equal(scope.tools.get('own'), own)
  assert.equal(ctx.tools.get('own'), undefined)
  assert.equal(scope.tools.schemas().length, 1)
  assert.deepEqual([...scope.tools.knownNames()], ['own'])
  assert.deepEqual([...ctx.tools.knownNames()], [])
  assert.equal(scope.tools.get('own', null), undefined)
  assert.deepEqual(scope.tools.schemas(null), [])
})
