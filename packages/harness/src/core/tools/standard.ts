import { toJSONSchema } from 'zod/v4/core'
import type { $ZodType } from 'zod/v4/core'
import { adopt } from '../../kernel/index.ts'
import type { ConfigSchema, SchemaIssue, SchemaResult } from '../../kernel/index.ts'
import type { Checked, Contract } from './contract.ts'
import { describePlace } from './place.ts'
import type { Place } from './place.ts'
import type { JsonRecord } from './schema.ts'

/** The parts of Standard Schema that are used: how zod, and others like it, check a value. */
export type StandardSchema<Output = unknown> = ConfigSchema<unknown, Output> & {
  readonly '~standard': {
    /** Not every library says its schemas in JSON by itself; zod/mini does not. */
    readonly jsonSchema?: Record<'input' | 'output', (options: { target: string }) => unknown>
  }
}

const target = 'draft-2020-12'

/** By its marks, whichever copy of whichever library made it. */
export function isStandard(schema: unknown): schema is StandardSchema {
  const holds = typeof schema === 'object' || typeof schema === 'function' ? schema : null
  if (holds === null || !('~standard' in holds)) return false
  return typeof (holds['~standard'] as { validate?: unknown } | null)?.validate === 'function'
}

export function standardContract(
  standard: StandardSchema,
  options: { readonly name: string; readonly io: 'input' | 'output' },
): Contract {
  let schema: JsonRecord | undefined
  return {
    get schema() {
      schema ??= sayInJson(standard, options)
      return schema
    },
    check: (value, root) => {
      const result = standard['~standard'].validate(value)
      return result instanceof Promise
        ? result.then(settled => toChecked(settled, root))
        : toChecked(result, root)
    },
  }
}

function toChecked(result: SchemaResult<unknown>, root: string): Checked {
  if (result.issues === undefined) return { value: result.value }
  return {
    violations: result.issues.map(issue => `${describePlace(root, placeOf(issue))}: ${issue.message}`),
  }
}

function placeOf(issue: SchemaIssue): Place | undefined {
  let place: Place | undefined
  for (const part of issue.path ?? []) {
    const key = typeof part === 'object' ? part.key : part
    place = { parent: place, key: typeof key === 'symbol' ? String(key) : key }
  }
  return place
}

function sayInJson(
  standard: StandardSchema,
  { name, io }: { readonly name: string; readonly io: 'input' | 'output' },
): JsonRecord {
  const say = standard['~standard'].jsonSchema?.[io]
  const said = (
    say === undefined ? toJSONSchema(standard as unknown as $ZodType, { target, io }) : say({ target })
  ) as JsonRecord | undefined
  const { $schema: _, ...schema } = said ?? {}
  if (io === 'input' && schema['type'] !== 'object') throw new TypeError(`${name} is no object schema`)
  return adopt(schema, name)
}
