import type { JsonValue } from '@dsh/protocol'
import { jsonEquals } from '../../kernel/index.ts'
import { describePlace } from './place.ts'
import type { Place } from './place.ts'
import { isOfType, isRecord } from './schema.ts'
import type { JsonRecord } from './schema.ts'
import { cutText } from './text.ts'

/** What is wrong with a value, path first; empty where nothing is. `root` names the value as a whole. */
export type Check = (value: JsonValue, root: string) => readonly string[]

/** Problems past these are not looked for. */
const mostProblems = 50
const longestShownValue = 60
const longestShownList = 400

interface Node {
  type?: string
  properties?: ReadonlyMap<string, Node>
  required?: readonly string[]
  closed?: boolean
  items?: Node
  options?: readonly JsonValue[]
  oneOf?: readonly Node[]
}

/** Collects the problems of one alternative, or of the whole value. */
interface Sink {
  readonly problems: { readonly place: Place | undefined; readonly text: string }[]
}

/** A value to look at, or, once all alternatives were looked at, the question which of them match. */
interface Task {
  readonly node: Node
  readonly value: JsonValue
  readonly place: Place | undefined
  readonly sink: Sink
  readonly alternatives?: readonly Sink[]
}

/**
 * A check for a schema as `toJsonSchema` gives it. Only own properties count, on both sides. Neither depth of the schema
 * nor of the value is a matter of the stack. Compiled when first asked.
 */
export function compileCheck(schema: JsonRecord): Check {
  let root: Node | undefined
  return (value, name) => {
    root ??= compile(schema)
    const sink: Sink = { problems: [] }
    const tasks: Task[] = [{ node: root, value, place: undefined, sink }]
    for (let task = tasks.pop(); task !== undefined && !isFull(sink); task = tasks.pop()) run(task, tasks)
    return sink.problems.map(({ place, text }) => `${describePlace(name, place)}: ${text}`)
  }
}

function isFull(sink: Sink): boolean {
  return sink.problems.length >= mostProblems
}

function compile(schema: JsonRecord): Node {
  const root: Node = {}
  const open: { readonly node: Node; readonly schema: JsonRecord }[] = [{ node: root, schema }]
  const later = (inner: JsonValue | undefined): Node => {
    const node: Node = {}
    open.push({ node, schema: inner as JsonRecord })
    return node
  }
  for (let next = open.pop(); next !== undefined; next = open.pop()) fill(next.node, next.schema, later)
  return root
}

function fill(node: Node, schema: JsonRecord, later: (inner: JsonValue | undefined) => Node): void {
  const own = (key: string): JsonValue | undefined => (Object.hasOwn(schema, key) ? schema[key] : undefined)
  const properties = own('properties')
  const options = own('enum')
  const single = own('const')
  const alternatives = own('oneOf')
  if (own('type') !== undefined) node.type = own('type') as string
  if (isRecord(properties)) {
    node.properties = new Map(Object.entries(properties).map(([key, inner]) => [key, later(inner)]))
  }
  node.required = (own('required') ?? []) as readonly string[]
  node.closed = own('additionalProperties') === false
  if (own('items') !== undefined) node.items = later(own('items'))
  if (Array.isArray(options)) node.options = options
  if (single !== undefined)
    node.options = (node.options ?? [single]).filter(option => jsonEquals(option, single))
  if (Array.isArray(alternatives)) node.oneOf = alternatives.map(inner => later(inner as JsonValue))
}

function run(task: Task, tasks: Task[]): void {
  const { node, value, place, sink, alternatives } = task
  if (alternatives !== undefined) {
    settleOneOf(task, alternatives)
    return
  }
  const report = (text: string): void => {
    if (!isFull(sink)) sink.problems.push({ place, text })
  }
  if (node.type !== undefined && !isOfType(value, node.type)) {
    report(`expected ${node.type}, got ${describeType(value)}`)
    return
  }
  if (node.options?.some(option => jsonEquals(option, value)) === false) {
    report(`expected ${describeOptions(node.options)}, got ${describeValue(value)}`)
  }
  if (node.oneOf !== undefined) openOneOf(task, node.oneOf, tasks)
  if (Array.isArray(value)) openItems(task, value, tasks)
  else if (isRecord(value)) openProperties(task, value, { tasks, report })
}

function openItems(task: Task, value: readonly JsonValue[], tasks: Task[]): void {
  const { node, place, sink } = task
  if (node.items === undefined) return
  // Last first, since the list of tasks is worked off from its end.
  for (let index = value.length - 1; index >= 0; index--) {
    const item = value[index] as JsonValue
    tasks.push({ node: node.items, value: item, place: { parent: place, key: index }, sink })
  }
}

function openProperties(
  task: Task,
  value: JsonRecord,
  { tasks, report }: { tasks: Task[]; report: (text: string) => void },
): void {
  const { node, place, sink } = task
  for (const key of node.required ?? []) {
    if (!Object.hasOwn(value, key)) {
      sink.problems.push({ place: { parent: place, key }, text: 'is required' })
    }
  }
  if (node.properties === undefined && node.closed !== true) return
  for (const key of Object.keys(value).reverse()) {
    const inner = node.properties?.get(key)
    if (inner !== undefined) {
      tasks.push({ node: inner, value: value[key] as JsonValue, place: { parent: place, key }, sink })
    } else if (node.closed === true)
      report(`unknown property ${JSON.stringify(cutText(key, longestShownValue))}`)
  }
}

function openOneOf(task: Task, oneOf: readonly Node[], tasks: Task[]): void {
  const { value, place } = task
  const sinks = oneOf.map((): Sink => ({ problems: [] }))
  tasks.push({ ...task, alternatives: sinks })
  for (const [index, node] of oneOf.entries()) {
    const sink = sinks[index]
    if (sink !== undefined) tasks.push({ node, value, place, sink })
  }
}

function settleOneOf(task: Task, alternatives: readonly Sink[]): void {
  const { place, sink } = task
  const matches = alternatives.filter(({ problems }) => problems.length === 0).length
  if (matches === 1) return
  const all = alternatives.length
  const text =
    matches === 0
      ? `matches none of ${all} alternatives`
      : `matches ${matches} of ${all} alternatives, not one`
  sink.problems.push({ place, text })
}

function describeType(value: JsonValue): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function describeValue(value: JsonValue): string {
  return typeof value === 'object' && value !== null
    ? describeType(value)
    : cutText(JSON.stringify(value), longestShownValue)
}

function describeOptions(options: readonly JsonValue[]): string {
  const shown = options
    .map(option =>
      isOfType(option, 'object') || Array.isArray(option)
        ? `a certain ${describeType(option)}`
        : describeValue(option),
    )
    .join(', ')
  return options.length === 1 ? shown : `one of ${cutText(shown, longestShownList)}`
}
