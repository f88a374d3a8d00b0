import type { ToolDefinition } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import { alternativesOf, deepestType, oneLine, parametersIn, schemaOf } from './signature.ts'
import type { Parameter } from './signature.ts'

const plainName = /^[A-Za-z_]\w*$/

const plainTypes: Readonly<Record<string, string>> = {
  string: 'str',
  number: 'float',
  integer: 'int',
  boolean: 'bool',
  null: 'None',
}

/** `tools.read(file_path: str, offset: int = ...) -> str  # Read a file.` */
export function pythonSignature(tool: ToolDefinition): string {
  const parameters = parametersIn(schemaOf(() => tool.parameters))
  const value = typeText(
    schemaOf(() => tool.output.schema),
    0,
  )
  const call = plainName.test(tool.name) ? `tools.${tool.name}` : `tools[${JSON.stringify(tool.name)}]`
  const notes = parameters.flatMap(({ name, comment }) => (comment === '' ? [] : [`${name}: ${comment}`]))
  const comment = [oneLine(tool.description), ...notes].join(' ')
  return `${call}(${parameters.map(parameterText).join(', ')}) -> ${value}  # ${comment}`
}

function parameterText({ name, schema, isRequired }: Parameter): string {
  return `${name}: ${typeText(schema, 0)}${isRequired ? '' : ' = ...'}`
}

function typeText(schema: unknown, depth: number): string {
  if (!isFields(schema) || depth > deepestType) return 'object'
  const { type, items, enum: options } = schema
  if (Array.isArray(options)) return `Literal[${options.map(option => JSON.stringify(option)).join(', ')}]`
  const alternatives = alternativesOf(schema)
  if (alternatives !== undefined) return alternatives.map(one => typeText(one, depth + 1)).join(' | ')
  if (type === 'array') return `list[${typeText(items, depth + 1)}]`
  if (type !== 'object') return plainTypes[String(type)] ?? 'object'
  const properties = parametersIn(schema).map(
    ({ name, schema: inner }) => `${JSON.stringify(name)}: ${typeText(inner, depth + 1)}`,
  )
  return properties.length === 0 ? 'dict' : `{${properties.join(', ')}}`
}
