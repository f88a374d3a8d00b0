import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  boolean,
  config,
  enum as oneOf,
  int,
  maximum,
  minLength,
  number,
  optional,
  positive,
  refine,
  safeParse,
  strictObject,
  string,
  union,
} from 'zod/mini'
import { issueTexts } from './schema-issue.ts'

const schema = strictObject({
  limit: optional(int().check(positive(), maximum(9))),
  mode: optional(oneOf(['on', 'off'])),
  name: optional(string().check(minLength(2))),
  even: optional(number().check(refine(value => value % 2 === 0, 'must be even'))),
  inner: optional(strictObject({})),
  either: optional(union([string(), boolean()])),
})

/** As where no language is loaded; the whole of zod, which other tests load, brings one along. */
function problems(value: unknown): string[] {
  const { localeError } = config()
  config({ localeError: undefined })
  try {
    return safeParse(schema, value).error?.issues.flatMap(issueTexts) ?? []
  } finally {
    config({ localeError })
  }
}

test('each problem of a schema is told with its place and what would do', () => {
  assert.deepEqual(problems({ limit: 'x' }), ['limit: must be of type number'])
  assert.deepEqual(problems({ limit: 0 }), ['limit: must be more than 0'])
  assert.deepEqual(problems({ limit: 10 }), ['limit: must be at most 9'])
  assert.deepEqual(problems({ mode: 'of' }), ['mode: must be "on" or "off"'])
  assert.deepEqual(problems({ name: 'a' }), ['name: must be of a length of at least 2'])
  assert.deepEqual(problems([]), ['(top level): must be of type object'])
})

test('a setting that is not known is named', () => {
  assert.deepEqual(problems({ a: 1, inner: { b: 2 } }), ['inner.b: is no setting', 'a: is no setting'])
})

test('a message of the schema itself stays, and where nothing is known the place alone is told', () => {
  assert.deepEqual(problems({ even: 1 }), ['even: must be even'])
  assert.deepEqual(problems({ either: 1 }), ['either: Invalid input'])
})
