import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { z as mini } from 'zod/mini'
import { CallId } from '@dsh/protocol'
import type { ContentBlock, JsonValue } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { defineTool, ToolRuntime } from './index.ts'
import type { ToolDefinition, ToolExecutionResult } from './index.ts'

function setup() {
  const ctx = new Context()
  void ctx.plugin(ToolRuntime)
  const { signal } = new AbortController()
  const run = async (tool: ToolDefinition, args: unknown): Promise<ToolExecutionResult> => {
    const undo = ctx.tools.register(tool)
    try {
      return await ctx.tools.execute({ callId: CallId('c'), name: tool.name, arguments: args, signal })
    } finally {
      undo()
    }
  }
  /** The text a model reads. */
  const say = async (tool: ToolDefinition, args: unknown): Promise<string> => {
    const { content } = await run(tool, args)
    return content.map(block => (block.type === 'text' ? block.text : block.type)).join('\n')
  }
  return { ctx, run, say }
}

const named = { name: 'x', description: 'A tool' } as const

/** Fails to compile unless both types are the same. */
function sameType<A, B>(same: [A] extends [B] ? ([B] extends [A] ? true : never) : never): void {
  assert.ok(same)
}

test('a map of properties says what is sent, and types what the body is given', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: {
      path: { type: 'string', required: true, description: 'Absolute' },
      limit: { type: 'integer', default: 10 },
      mode: { type: 'string', enum: ['fast', 'slow'] },
      tags: { type: 'array', items: { type: 'string' } },
      range: {
        type: 'object',
        properties: { from: { type: 'number', required: true }, to: { type: 'number' } },
        additionalProperties: false,
      },
      extra: { type: 'json' },
      id: { oneOf: [{ type: 'string' }, { type: 'null' }] },
    },
    execute: args => {
      sameType<
        typeof args,
        {
          readonly path: string
          readonly limit?: number
          readonly mode?: 'fast' | 'slow'
          readonly tags?: readonly string[]
          readonly range?: { readonly from: number; readonly to?: number }
          readonly extra?: JsonValue
          readonly id?: string | null
        }
      >(true)
      return JSON.stringify(args)
    },
  })
  assert.deepEqual(tool.parameters, {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Absolute' },
      limit: { type: 'integer', default: 10 },
      mode: { type: 'string', enum: ['fast', 'slow'] },
      tags: { type: 'array', items: { type: 'string' } },
      range: {
        type: 'object',
        properties: { from: { type: 'number' }, to: { type: 'number' } },
        required: ['from'],
        additionalProperties: false,
      },
      extra: {},
      id: { oneOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['path'],
  })
  assert.equal(await say(tool, { path: '/a' }), '{"path":"/a"}')
})

test('arguments that do not fit are refused with every violation, path first', async () => {
  const { run, say } = setup()
  const tool = defineTool({
    ...named,
    parameters: {
      todos: {
        type: 'array',
        required: true,
        items: {
          type: 'object',
          properties: {
            content: { type: 'string', required: true },
            status: { type: 'string', enum: ['pending', 'done'], required: true },
          },
          additionalProperties: false,
        },
      },
    },
    execute: () => 'ran',
  })
  const result = await run(tool, { todos: [{ content: 1, status: 'later' }, { 'content ': '' }] })
  assert.deepEqual(result.isError && result.error, {
    message:
      'invalid arguments: todos[0].content: expected string, got number; ' +
      'todos[0].status: expected one of "pending", "done", got "later"; ' +
      'todos[1].content: is required; todos[1].status: is required; ' +
      'todos[1]: unknown property "content "',
    info: { name: 'ToolArgsError', code: 'INVALID_ARGS' },
  })
  assert.equal(await say(tool, {}), 'Error: invalid arguments: todos: is required')
})

test('of very many violations some are named, each shortened, and the rest counted', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: { list: { type: 'array', items: { type: 'string', enum: ['a'.repeat(999)] } } },
    execute: () => 'ran',
  })
  const text = await say(tool, { list: Array.from({ length: 1000 }, () => 'b'.repeat(999)) })
  assert.ok(text.endsWith('; and 30 more'))
  assert.equal(text.split('; ').length, 21)
  assert.ok(text.length < 5000)
})

test('arguments that are no JSON object are refused, whatever the model wrote', async () => {
  const { say } = setup()
  const tool = defineTool({ ...named, parameters: {}, execute: () => 'ran' })
  for (const [args, type] of [
    ['{"a": "l', 'string'],
    [null, 'null'],
    [[1], 'array'],
    [1, 'number'],
  ] as const) {
    assert.equal(await say(tool, args), `Error: invalid arguments: arguments: expected object, got ${type}`)
  }
  assert.equal(await say(tool, undefined), 'ran')
})

test('unknown arguments at the root are tolerated, and defaults are told but not filled in', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: { limit: { type: 'number', default: 5 } },
    execute: args => JSON.stringify(args),
  })
  assert.equal(await say(tool, { other: true }), '{"other":true}')
})

test('a property named like a keyword or like a prototype is a property', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: {
      type: { type: 'string', required: true },
      ['__proto__']: { type: 'number' },
      constructor: { type: 'number', required: true },
    },
    execute: args => args.type,
  })
  assert.deepEqual(Object.keys(tool.parameters['properties'] as object), ['type', '__proto__', 'constructor'])
  assert.equal(
    await say(tool, JSON.parse('{"type":"a","__proto__":"b"}')),
    'Error: invalid arguments: constructor: is required; __proto__: expected number, got string',
  )
  assert.equal(await say(tool, { type: 'a', constructor: 1 }), 'a')
})

test('a map that says what cannot be enforced is refused, naming every place', () => {
  const parameters = {
    a: { type: 'string', format: 'date' },
    b: { type: 'object', properties: { c: { type: 'date' } } },
    d: { type: 'array', items: { required: true, type: 'string' } },
    e: { oneOf: [{ type: 'string' }] },
    f: {},
    g: 1,
  } as never
  assert.throws(() => defineTool({ ...named, parameters, execute: () => '' }), {
    name: 'JsonSchemaError',
    code: 'INVALID_SCHEMA',
    message:
      'parameters of tool "x" cannot be used: b: additionalProperties must be true or false; ' +
      'e: oneOf needs at least two alternatives; f: has neither type nor oneOf; g: is no value spec; ' +
      'd.items: required is true or false on a property, nothing elsewhere',
  })
  const deeper = { a: { type: 'string', format: 'date', enum: [1] }, b: { type: 'date' } } as never
  assert.throws(() => defineTool({ ...named, parameters: deeper, execute: () => '' }), {
    message:
      'parameters of tool "x" cannot be used: properties.a: unknown keyword "format"; ' +
      'properties.a: enum has a value that is no string; ' +
      'properties.b: type is "date", not one of string, number, integer, boolean, null, array, object',
  })
})

test('a zod object checks, and its JSON Schema is sent', async () => {
  const { ctx, say } = setup()
  const tool = defineTool({
    ...named,
    parameters: z.object({ path: z.string().min(1).describe('Where'), limit: z.number().default(3) }),
    execute: args => {
      sameType<typeof args, { path: string; limit: number }>(true)
      return `${args.path}:${args.limit}`
    },
  })
  ctx.tools.register(tool)
  assert.deepEqual(ctx.tools.schemas()[0]?.parameters, {
    type: 'object',
    properties: {
      path: { type: 'string', minLength: 1, description: 'Where' },
      limit: { type: 'number', default: 3 },
    },
    required: ['path'],
  })
  const other = { ...tool, name: 'y' }
  assert.equal(await say(other, { path: 'a' }), 'a:3')
  assert.match(await say(other, { path: '' }), /^Error: invalid arguments: path: Too small/)
  assert.match(await say(other, 'text'), /^Error: invalid arguments: arguments: /)
})

test('a zod/mini object does too', async () => {
  const { ctx, say } = setup()
  const tool = defineTool({
    ...named,
    parameters: mini.object({
      todos: mini.array(mini.object({ done: mini.boolean() })),
      n: mini.optional(mini.int()),
    }),
    execute: args => String(args.todos.length),
  })
  const undo = ctx.tools.register(tool)
  assert.equal(ctx.tools.schemas()[0]?.parameters['type'], 'object')
  undo()
  assert.equal(await say(tool, { todos: [{ done: true }] }), '1')
  assert.match(await say(tool, { todos: [{ done: 1 }] }), /^Error: invalid arguments: todos\[0\]\.done: /)
})

test('a zod check that takes its time is awaited for a call, and not for a classification', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: z.object({ path: z.string().refine(async path => path !== 'bad', 'is bad') }),
    execute: () => 'ran',
    isConcurrencySafe: () => true,
  })
  assert.equal(await say(tool, { path: 'good' }), 'ran')
  assert.equal(await say(tool, { path: 'bad' }), 'Error: invalid arguments: path: is bad')
  assert.equal(tool.isConcurrencySafe?.({ path: 'good' }), false)
})

test('a zod schema that is no object is left out of what a model is told', () => {
  const { ctx } = setup()
  const errors: unknown[] = []
  ctx.on('internal/error', error => void errors.push(error))
  ctx.tools.register(defineTool({ ...named, parameters: z.array(z.string()), execute: () => '' }))
  assert.deepEqual(ctx.tools.schemas(), [])
  assert.match(String(errors[0]), /parameters of tool "x" is no object schema/)
})

test('a JSON Schema is sent as it is, and checked', async () => {
  const { say } = setup()
  const parameters = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: { path: { type: 'string' }, depth: { type: 'integer' } },
    required: ['path'],
    additionalProperties: false,
  } as const
  const tool = defineTool({
    ...named,
    parameters,
    execute: args => {
      sameType<typeof args, { readonly path: string; readonly depth?: number }>(true)
      return args.path
    },
    isConcurrencySafe: () => true,
  })
  assert.deepEqual(tool.parameters, parameters)
  assert.equal(await say(tool, { path: 'a' }), 'a')
  assert.equal(
    await say(tool, { depth: 1.5, other: 1 }),
    'Error: invalid arguments: path: is required; arguments: unknown property "other"; ' +
      'depth: expected integer, got number',
  )
  assert.equal(tool.isConcurrencySafe?.({ path: 'a' }), true)
})

test('a JSON Schema with more than is enforced here is checked all the same', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 2, pattern: '^/' },
        items: { type: 'array', items: { $ref: '#/$defs/item' } },
      },
      $defs: { item: { anyOf: [{ type: 'string' }, { type: 'number', minimum: 0 }] } },
      required: ['path'],
    },
    execute: () => 'ran',
    isConcurrencySafe: () => true,
  })
  assert.equal(tool.isConcurrencySafe?.({ path: '/a' }), false)
  assert.equal(await say(tool, { path: '/a', items: ['b', 1] }), 'ran')
  assert.equal(tool.isConcurrencySafe?.({ path: '/a' }), true)
  assert.match(await say(tool, {}), /^Error: invalid arguments: arguments: .*required property "path"/)
  const text = await say(tool, { path: 'a', items: [-1] })
  assert.match(text, /path: String is too short/)
  assert.match(text, /path: String does not match pattern/)
  assert.match(text, /items\[0\]: /)
})

test('what a foreign schema says beyond JavaScript constrains nothing', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: {
      type: 'object',
      properties: {
        pattern: { type: 'string', pattern: '(?i)^foo$' },
        ref: { $ref: 'https://example.org/schema.json' },
        count: { type: 'number', minimum: 1 },
      },
      patternProperties: { '(?P<x>': { type: 'null' } },
    },
    execute: () => 'ran',
  })
  assert.equal(await say(tool, { pattern: 'FOO', ref: 1, count: 1 }), 'ran')
  assert.match(await say(tool, { count: 0 }), /count: 0 is less than 1/)
})

test('a foreign schema that cannot be followed refuses, and says so', async () => {
  const { say } = setup()
  const tool = defineTool({
    ...named,
    parameters: { type: 'object', properties: { a: { $ref: '#/$defs/missing' } } },
    execute: () => 'ran',
  })
  assert.match(
    await say(tool, { a: 1 }),
    /^Error: invalid arguments: arguments: cannot be checked: Unresolved \$ref/,
  )
})

test('without an output the model reads the string that the body gives', async () => {
  const { run } = setup()
  const tool = defineTool({ ...named, parameters: {}, execute: async () => 'text' })
  assert.deepEqual(await run(tool, {}), {
    isError: false,
    value: 'text',
    content: [{ type: 'text', text: 'text' }],
  })
  const wrong = await run(defineTool({ ...named, parameters: {}, execute: () => 1 as never }), {})
  assert.equal(wrong.isError && wrong.error.info?.code, 'INVALID_TOOL_OUTPUT')
})

test('content blocks are given as they are', async () => {
  const { run } = setup()
  const blocks: readonly ContentBlock[] = [
    { type: 'text', text: 'a' },
    { type: 'image', attachment: { sha256: 'f00', mediaType: 'image/png', bytes: 1 } },
  ]
  const tool = defineTool({ ...named, parameters: {}, output: 'content', execute: () => blocks })
  assert.deepEqual((await run(tool, {})).content, blocks)
})

test('an output says what the value is, and how it reads', async () => {
  const { run } = setup()
  const tool = defineTool({
    ...named,
    parameters: { path: { type: 'string', required: true } },
    output: {
      schema: { lines: { type: 'integer', required: true }, note: { type: 'string' } },
      render: (args, value) => {
        sameType<typeof value, { readonly lines: number; readonly note?: string }>(true)
        return `${args.path}: ${value.lines} lines`
      },
      presentationMeta: (_args, value) => ({ lines: value.lines }),
    },
    execute: () => ({ lines: 3 }),
  })
  assert.deepEqual(await run(tool, { path: 'a' }), {
    isError: false,
    value: { lines: 3 },
    content: [{ type: 'text', text: 'a: 3 lines' }],
    meta: { lines: 3 },
  })
})

test('the schema of a result may be JSON Schema of any type, or zod', async () => {
  const { run } = setup()
  const list = defineTool({
    ...named,
    parameters: {},
    output: {
      schema: { type: 'array', items: { type: 'number' } },
      render: (_args, value) => {
        sameType<typeof value, readonly number[]>(true)
        return value.join()
      },
    },
    execute: () => [1, 2],
  })
  assert.deepEqual((await run(list, {})).content, [{ type: 'text', text: '1,2' }])
  const checked = defineTool({
    ...named,
    parameters: {},
    output: { schema: z.object({ n: z.number().max(3) }), render: (_args, value) => String(value.n) },
    execute: () => ({ n: 4 }),
  })
  const result = await run(checked, {})
  assert.match(result.isError ? result.error.message : '', /gave an invalid result: n: Too big/)
  assert.deepEqual(checked.output.schema['required'], ['n'])
  assert.throws(
    () =>
      defineTool({
        ...named,
        parameters: {},
        output: { schema: { type: 'string', format: 'uri' }, render: () => '' },
        execute: () => '',
      }),
    /the output schema of tool "x" cannot be used: \(top level\): unknown keyword "format"/,
  )
})

test('presenters see only arguments that fit, and one that breaks presents nothing', () => {
  const tool = defineTool({
    ...named,
    parameters: { path: { type: 'string', required: true } },
    execute: () => '',
    presentCall: ({ path }) => ({ card: 'read', title: path.toUpperCase() }),
    presentResult: (_args, { meta }) => ({ card: 'read', title: (meta as { title: string }).title }),
  })
  assert.deepEqual(tool.presentCall?.({ path: 'a' }), { card: 'read', title: 'A' })
  assert.equal(tool.presentCall?.({ path: 1 }), undefined)
  assert.equal(tool.presentCall?.('torn'), undefined)
  assert.equal(tool.presentResult?.({ path: 'a' }, { content: [], isError: false }), undefined)
})

test('what a tool does not declare, its definition does not have', () => {
  const tool = defineTool({ ...named, parameters: {}, execute: () => '' })
  assert.deepEqual(Object.keys(tool), ['name', 'description', 'parameters', 'output', 'execute'])
})
