import type { ToolDefinition } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import { alternativesOf, deepestType, oneLine, parametersIn, schemaOf } from './signature.ts'

const plainName = /^[A-Za-z_$][\w$]*$/

/** `tools.read(args: { file_path: string }): Promise<string> // Read a file.` */
export function typescriptSignature(tool: ToolDefinition): string {
  const schema = schemaOf(() => tool.parameters)
  const parameters = parametersIn(schema)
  const args = parameters.length === 0 ? '' : typeText(schema, 0)
  const isOptional = parameters.every(({ isRequired }) => !isRequired)
  const given = args === '' ? '' : `args${isOptional ? '?' : ''}: ${args}`
  const value = typeText(
    schemaOf(() => tool.output.schema),
    0,
  )
  const call = plainName.test(tool.name) ? `tools.${tool.name}` : `tools[${JSON.stringify(tool.name)}]`
  return `${call}(${given}): Promise<${value}> // ${oneLine(tool.description)}`
}

function typeText(schema: unknown, depth: number): string {
  if (!isFields(schema) || depth > deepestType) return 'unknown'
  const { type, items, enum: options } = schema
  if (Array.isArray(options)) return options.map(option => JSON.stringify(option)).join(' | ')
  if (schema['const'] !== undefined) return JSON.stringify(schema['const'])
  const alternatives = alternativesOf(schema)
  if (alternatives !== undefined) return alternatives.map(one => typeText(one, depth + 1)).join(' | ')
  switch (type) {
    case 'integer':
      return 'number'
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type
    case 'array': {
      const item = typeText(items, depth + 1)
      return item.includes(' ') ? `(${item})[]` : `${item}[]`
    }
    case 'object':
      return objectText(schema, depth)
    default:
      return 'unknown'
  }
}

function objectText(schema: unknown, depth: number): string {
  const properties = parametersIn(schema).map(({ name, schema: inner, isRequired, comment }) => {
    const key = plainName.test(name) ? name : JSON.stringify(name)
    const note = comment === '' ? '' : ` /* ${comment.replaceAll('*/', '* /')} */`
    return `${key}${isRequired ? '' : '?'}: ${typeText(inner, depth + 1)}${note}`
  })
  return properties.length === 0 ? 'Record<string, unknown>' : `{ ${properties.join('; ')} }`
}
