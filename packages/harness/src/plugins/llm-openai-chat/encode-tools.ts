import type { JsonValue, ToolSchema } from '@dsh/protocol'
import { isFields, messageOf } from '../../kernel/index.ts'
import type { WireNoticeCode } from './notice.ts'
import { jsonString } from './wire-text.ts'

type Report = (code: WireNoticeCode, text: string) => void
type Fields = { readonly [key: string]: JsonValue }

/** An object of any shape: what stands for a schema that cannot be sent. */
const openObject = '{"type":"object","properties":{}}'
const toolName = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * The `tools` array as JSON, or undefined where none is left. A broken tool or schema degrades alone and is reported;
 * tools in `opened` go out with an open schema, since the host refused their own.
 */
export function encodeTools(
  tools: readonly ToolSchema[],
  options: { readonly opened: ReadonlySet<string>; readonly report: Report },
): string | undefined {
  const { opened, report } = options
  const names = new Set<string>()
  const encoded: string[] = []
  for (const tool of tools) {
    const { name } = tool
    if (typeof name !== 'string' || !toolName.test(name)) {
      report(
        'BAD_TOOL_SCHEMA',
        `tool ${JSON.stringify(name)} is left out: its name is not valid on this wire`,
      )
    } else if (names.has(name)) {
      report('BAD_TOOL_SCHEMA', `a second tool named "${name}" is left out`)
    } else {
      names.add(name)
      encoded.push(encodeTool(tool, opened.has(name), report))
    }
  }
  return encoded.length === 0 ? undefined : `[${encoded.join(',')}]`
}

function encodeTool(tool: ToolSchema, isOpened: boolean, report: Report): string {
  const { name, description } = tool
  const text = typeof description === 'string' ? description : ''
  const lone = (count: number): void =>
    report('LONE_SURROGATE', `the description of tool "${name}" holds ${count} half characters`)
  const parameters = isOpened ? openObject : encodeParameters(tool, report)
  return `{"type":"function","function":{"name":"${name}","description":${jsonString(text, lone)},"parameters":${parameters}}}`
}

function encodeParameters(tool: ToolSchema, report: Report): string {
  const problem = (what: string): void =>
    report('BAD_TOOL_SCHEMA', `the schema of tool "${tool.name}" is not sent as it is: ${what}`)
  try {
    const schema = repaired(tool.parameters, problem)
    const json = JSON.stringify(schema)
    if (json === undefined) throw new TypeError('it is no JSON')
    return mendEscapes(json, () => problem('it holds half characters'))
  } catch (error) {
    problem(messageOf(error))
    return openObject
  }
}

/** The schema itself where its root is in order, else a copy with the broken parts of the root replaced. */
function repaired(schema: JsonValue, problem: (what: string) => void): unknown {
  if (!isFields(schema)) throw new TypeError('it is no object')
  const { type, properties, required } = schema
  const change: { type?: string; properties?: Fields; required?: JsonValue } = {}
  if (type !== 'object') {
    if (type !== undefined) throw new TypeError(`its type is ${JSON.stringify(type)}, not "object"`)
    change.type = 'object'
  }
  if (properties !== undefined) {
    const sound = soundProperties(properties, problem)
    if (sound !== properties) change.properties = sound
  }
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every(key => typeof key === 'string'))
  ) {
    problem('"required" is no list of names')
    change.required = Array.isArray(required) ? required.filter(key => typeof key === 'string') : []
  }
  return Object.keys(change).length === 0 ? schema : { ...schema, ...change }
}

function soundProperties(properties: JsonValue, problem: (what: string) => void): Fields {
  if (!isFields(properties)) {
    problem('"properties" is no object')
    return {}
  }
  const broken = Object.entries(properties).filter(([, part]) => !isFields(part) && typeof part !== 'boolean')
  if (broken.length === 0) return properties
  problem(`property ${broken.map(([key]) => `"${key}"`).join(', ')} is no schema`)
  return Object.fromEntries(
    Object.entries(properties).map(([key, part]) => [key, isFields(part) ? part : {}]),
  )
}

/** `JSON.stringify` writes half characters as escapes, which strict hosts refuse. */
function mendEscapes(json: string, onLone: () => void): string {
  if (!loneEscape.test(json)) return json
  onLone()
  return json.replace(loneEscapes, '$1\\ufffd')
}

const loneEscape = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/
const loneEscapes = /((?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g
