import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Validator } from '@cfworker/json-schema'
import type { JsonValue } from '@dsh/protocol'
import { compileCheck } from './check.ts'
import { toJsonSchema, toOutputContract, toParametersContract } from './index.ts'
import type { JsonRecord } from './index.ts'

/** More than a recursive walk survives, however little each of its calls needs. */
const depth = 10_500

function check(schema: JsonRecord, value: JsonValue): readonly string[] {
  return compileCheck(toJsonSchema(schema, 'schema'))(value, 'value')
}

test('a schema inside the subset is kept, as a frozen copy', () => {
  const schema = {
    type: 'object',
    title: 'T',
    properties: {
      a: { type: 'array', items: { enum: [1, 'x', null] } },
      b: { oneOf: [{ type: 'null' }, {}] },
    },
    required: ['a'],
    additionalProperties: false,
  }
  const kept = toJsonSchema(schema, 'schema')
  assert.deepEqual(kept, schema)
  assert.notEqual(kept, schema)
  assert.ok(Object.isFrozen(kept))
})

test('a schema outside the subset is refused, naming every place', () => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: ['string', 'null'] },
      b: { type: 'string', properties: {}, items: {} },
      c: { type: 'array', items: [{ type: 'string' }] },
      'd e': { oneOf: [], $ref: '#' },
      f: { oneOf: [{ minimum: 1 }], type: 'string' },
      g: true,
    },
    required: ['a', 'a'],
    additionalProperties: {},
  }
  assert.throws(() => toJsonSchema(schema, 'the schema'), {
    name: 'JsonSchemaError',
    problems: [
      '(top level): required is no list of different names',
      '(top level): additionalProperties is neither true nor false',
      'properties.a: type is ["string","null"], not one of string, number, integer, boolean, null, array, object',
      'properties.b: "properties" belongs to type "object"',
      'properties.b: "items" belongs to type "array"',
      'properties["d e"]: unknown keyword "$ref"',
      'properties["d e"]: oneOf is no list of schemas',
      'properties.f: "type" cannot stand beside oneOf',
      'properties.g: is no schema',
      'properties.c.items: is no schema',
      'properties.f.oneOf[0]: unknown keyword "minimum"',
    ],
  })
})

test('each keyword is enforced', () => {
  const rows: [schema: JsonRecord, fits: JsonValue, fails: JsonValue, problem: string][] = [
    [{ type: 'string' }, '', 1, 'value: expected string, got number'],
    [{ type: 'integer' }, 1, 1.5, 'value: expected integer, got number'],
    [{ type: 'number' }, 1.5, '1', 'value: expected number, got string'],
    [{ type: 'boolean' }, false, null, 'value: expected boolean, got null'],
    [{ type: 'null' }, null, [], 'value: expected null, got array'],
    [{ type: 'array', items: { type: 'null' } }, [null], [1], 'value[0]: expected null, got number'],
    [{ type: 'object' }, {}, [], 'value: expected object, got array'],
    [{ const: { a: 1 } }, { a: 1 }, { a: 2 }, 'value: expected a certain object, got object'],
    [{ enum: [1, 2] }, 2, 3, 'value: expected one of 1, 2, got 3'],
    [{ oneOf: [{ type: 'string' }, { const: 1 }] }, 1, 2, 'value: matches none of 2 alternatives'],
    [{ oneOf: [{ type: 'number' }, { const: 1 }] }, 2, 1, 'value: matches 2 of 2 alternatives, not one'],
  ]
  for (const [schema, fits, fails, problem] of rows) {
    assert.deepEqual(check(schema, fits), [])
    assert.deepEqual(check(schema, fails), [problem.replace('value[0]', '[0]')])
  }
})

test('alternatives inside alternatives are counted apart', () => {
  const inner = { oneOf: [{ type: 'string' }, { type: 'number' }] }
  const schema = {
    oneOf: [
      { type: 'object', properties: { a: inner }, required: ['a'] },
      { type: 'object', properties: { b: inner }, required: ['b'] },
    ],
  }
  assert.deepEqual(check(schema, { a: 1 }), [])
  assert.deepEqual(check(schema, { b: 'x', a: null }), [])
  assert.deepEqual(check(schema, { a: null }), ['value: matches none of 2 alternatives'])
  assert.deepEqual(check(schema, { a: 1, b: 1 }), ['value: matches 2 of 2 alternatives, not one'])
})

test('only own properties count', () => {
  const schema = { type: 'object', properties: { toString: { type: 'string' } }, required: ['toString'] }
  assert.deepEqual(check(schema, {}), ['toString: is required'])
  const closed = { type: 'object', additionalProperties: false }
  assert.deepEqual(check(closed, JSON.parse('{"__proto__":1}') as JsonValue), [
    'value: unknown property "__proto__"',
  ])
})

test('problems are bounded, and so are the values they name', () => {
  const problems = check(
    { type: 'array', items: { enum: ['a'] } },
    Array.from({ length: 1000 }, () => 'x'.repeat(999)),
  )
  assert.equal(problems.length, 50)
  assert.ok(problems.every(problem => problem.length < 100))
})

test('depth of schema and value is bounded by memory alone', () => {
  let schema: JsonRecord = { type: 'string' }
  let value: JsonValue = 'leaf'
  let wrong: JsonValue = 1
  for (let level = 0; level < depth; level++) {
    schema = { type: 'object', properties: { a: schema }, required: ['a'], additionalProperties: false }
    value = { a: value }
    wrong = { a: wrong }
  }
  const deep = compileCheck(toJsonSchema(schema, 'schema'))
  assert.deepEqual(deep(value, 'value'), [])
  const [problem = ''] = deep(wrong, 'value')
  assert.equal(problem, 'a.a.a.a.a.a….a.a.a.a.a.a: expected string, got number')
  let bad: unknown = { format: 'x' }
  for (let level = 0; level < depth; level++) bad = { oneOf: [bad] }
  assert.throws(() => toJsonSchema(bad, 'schema'), { code: 'INVALID_SCHEMA' })
})

test('depth of a map of properties is bounded by memory alone', async () => {
  let spec: object = { type: 'string', required: true }
  let value: JsonValue = 'leaf'
  for (let level = 0; level < depth; level++) {
    spec = { type: 'object', properties: { a: spec }, additionalProperties: false, required: true }
    value = { a: value }
  }
  const contract = toParametersContract({ root: spec }, 'parameters')
  assert.deepEqual((await contract.check({ root: value }, 'arguments')).violations, undefined)
  assert.equal((await contract.check({ root: {} }, 'arguments')).violations?.[0], 'root.a: is required')
})

test('a foreign schema that is too deep to be checked refuses', async () => {
  let schema: JsonRecord = { type: 'string', minLength: 1 }
  let value: JsonValue = 'leaf'
  for (let level = 0; level < depth; level++) {
    schema = { type: 'object', properties: { a: schema } }
    value = { a: value }
  }
  const { violations } = await toParametersContract(schema, 'parameters').check(value, 'arguments')
  assert.match(violations?.[0] ?? '', /^arguments: cannot be checked: /)
})

test('a map of properties is told from a JSON Schema of a result', async () => {
  const map = toOutputContract({ type: { type: 'string', required: true } }, 'output')
  assert.deepEqual(map.schema['required'], ['type'])
  assert.deepEqual(toOutputContract({}, 'output').schema, {})
  assert.deepEqual((await toOutputContract({ type: 'string' }, 'output').check(1, 'value')).violations, [
    'value: expected string, got number',
  ])
})

test('our check and the checker for foreign schemas agree', () => {
  const scalar = fc.oneof(
    fc.constantFrom('a', 'b', '', 'x'),
    fc.integer({ min: -2, max: 2 }),
    fc.constant(1.5),
  )
  const leaf = fc.oneof(scalar, fc.boolean(), fc.constant(null))
  const { value } = fc.letrec<{ value: JsonValue }>(tie => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('value'), { maxKeys: 3 }),
    ),
  }))
  const { schema } = fc.letrec<{ schema: JsonRecord }>(tie => ({
    schema: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('string', 'number', 'integer', 'boolean', 'null').map(type => ({ type })),
      fc.array(leaf, { minLength: 1, maxLength: 3 }).map(options => ({ enum: options })),
      tie('schema').map(items => ({ type: 'array', items })),
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map(oneOf => ({ oneOf })),
      fc.record({
        type: fc.constant('object'),
        properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema'), { maxKeys: 2 }),
        required: fc.uniqueArray(fc.constantFrom('a', 'b')),
        additionalProperties: fc.boolean(),
      }),
    ),
  }))
  fc.assert(
    fc.property(schema, value, (wanted, given) => {
      const { valid } = new Validator(structuredClone(wanted) as object, '2020-12').validate(given)
      assert.equal(check(wanted, given).length === 0, valid)
    }),
    { numRuns: 500 },
  )
})
