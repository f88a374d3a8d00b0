import type { JsonValue } from '@dsh/protocol'
import { cutText } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import type { Fields } from '../../../kernel/index.ts'

/** Types deeper than this are not spelled out. */
export const deepestType = 5
const longestComment = 300

export interface Parameter {
  readonly name: string
  readonly schema: unknown
  readonly isRequired: boolean
  /** Empty where there is none. */
  readonly comment: string
}

/** Properties of an object schema, required ones first. */
export function parametersIn(schema: unknown): readonly Parameter[] {
  if (!isFields(schema)) return []
  const { properties, required } = schema
  if (!isFields(properties)) return []
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  return Object.entries(properties)
    .map(([name, inner]) => ({
      name,
      schema: inner,
      isRequired: names.includes(name),
      comment: commentOf(inner),
    }))
    .toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired))
}

/** The alternatives of a schema, where it is a choice. */
export function alternativesOf({ oneOf, anyOf, type, ...rest }: Fields): readonly unknown[] | undefined {
  if (Array.isArray(oneOf)) return oneOf
  if (Array.isArray(anyOf)) return anyOf
  return Array.isArray(type) ? type.map(one => ({ ...rest, type: one as JsonValue })) : undefined
}

/** On one line. */
function commentOf(schema: unknown): string {
  const { description } = isFields(schema) ? schema : {}
  return typeof description === 'string' ? oneLine(description) : ''
}

export function oneLine(text: string): string {
  return cutText(text.replaceAll(/\s+/g, ' ').trim(), longestComment)
}

/** A tool's own schema, read once; one that cannot be said is unknown. */
export function schemaOf(read: () => ToolDefinition['parameters']): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}
