import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { JsonValue } from '@dsh/protocol'
import { isFields, isText } from '../../kernel/index.ts'

type Fields = Readonly<Record<string, unknown>>

/** One tool as hook files know it: their name, and their names of its arguments where they differ. */
interface ForeignTool {
  readonly name: string
  /** Theirs by ours. */
  readonly fields?: Readonly<Record<string, string>>
  /** Arguments of ours that stay where a hook gives others: they have no word for them, or leave it out. */
  readonly ours?: readonly string[]
  /** Theirs names absolute paths. */
  readonly paths?: readonly string[]
}

const foreignTools: Readonly<Record<string, ForeignTool>> = {
  bash: {
    name: 'Bash',
    fields: { timeoutMs: 'timeout' },
    ours: ['description', 'workdir', 'sandbox_permissions', 'justification'],
  },
  edit: { name: 'Edit', paths: ['file_path'] },
  write: { name: 'Write', paths: ['file_path'] },
  read: { name: 'Read', paths: ['file_path'] },
  read_image: { name: 'Read', paths: ['file_path'] },
  grep: {
    name: 'Grep',
    fields: { include: 'glob', context: '-C', ignore_case: '-i', limit: 'head_limit' },
    paths: ['path'],
  },
  glob: { name: 'Glob', paths: ['path'] },
  todo_write: { name: 'TodoWrite' },
  web_fetch: { name: 'WebFetch' },
  web_search: { name: 'WebSearch' },
  task_output: { name: 'TaskOutput' },
  task_kill: { name: 'TaskStop' },
  tool_search: { name: 'ToolSearch' },
  // What is typed into a shell is a command, also where nobody there has such a tool.
  terminal_send: { name: 'Bash', fields: { text: 'command' }, ours: ['sessionId'] },
}

const editorFields = {
  path: 'file_path',
  file_text: 'content',
  old_str: 'old_string',
  new_str: 'new_string',
}
/** One tool here, several there, by its argument `command`. */
const editorNames: Readonly<Record<string, string>> = { view: 'Read', create: 'Write' }

function foreignTool(name: string, args: JsonValue): ForeignTool | undefined {
  if (name !== 'str_replace_editor' || !isFields(args)) return own(foreignTools, name)
  const { command } = args
  return {
    name: (isText(command) ? own(editorNames, command) : undefined) ?? 'Edit',
    fields: editorFields,
    ours: ['command', 'insert_line', 'view_range'],
  }
}

/** Not what every object has, such as its constructor: names come from models and hooks. */
function own<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** A call in the terms of hook files. */
export interface ForeignCall {
  readonly name: string
  /** Every name by which a matcher may mean it, ours too. */
  readonly names: readonly string[]
  readonly input: Fields
}

/** `mcp__…` and whatever has no other name keeps its own. `folder` is the session's. */
export function toForeignCall(name: string, args: JsonValue, folder: string): ForeignCall {
  const tool = foreignTool(name, args)
  const renamed = tool?.fields ?? {}
  const fields: Fields = isFields(args) ? args : {}
  const input = Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [own(renamed, key) ?? key, absolute(value, key)]),
  )
  const { edits } = fields
  // One call that makes several edits was a tool of its own there.
  if (name === 'edit' && Array.isArray(edits) && edits.length > 0) {
    const { file_path, ...first } = input
    const { edits: _, ...own } = first
    return {
      name: 'MultiEdit',
      names: ['Edit', 'MultiEdit', name],
      input: { file_path, ...own, edits: [own, ...(edits as unknown[])] },
    }
  }
  const theirs = tool?.name ?? name
  return { name: theirs, names: theirs === name ? [theirs] : [theirs, name], input }

  function absolute(value: unknown, key: string): unknown {
    const isPath = tool?.paths?.includes(key) === true && typeof value === 'string'
    return isPath ? resolve(folder, value) : value
  }
}

/** The arguments of ours that `input` of theirs means; those that a hook cannot know stay as they are in `args`. */
export function fromForeignInput(name: string, input: Fields, args: JsonValue): Fields {
  const tool = foreignTool(name, args)
  const back = Object.fromEntries(
    Object.entries(tool?.fields ?? {}).map(([ours, theirs]) => [theirs, ours] as const),
  )
  const named = Object.fromEntries(
    Object.entries(input).map(([key, value]) => [own(back, key) ?? key, value]),
  )
  const kept = (tool?.ours ?? []).flatMap(key =>
    isFields(args) && args[key] !== undefined && named[key] === undefined ? [[key, args[key]] as const] : [],
  )
  const whole = { ...named, ...Object.fromEntries(kept) }
  return name === 'edit' ? withFirstEdit(whole) : whole
}

/** Theirs lists the first edit with the others. */
function withFirstEdit({ edits, ...others }: Fields): Fields {
  if (!Array.isArray(edits)) return others
  const [first, ...more] = edits as unknown[]
  const { file_path } = others
  return { file_path, ...(isFields(first) && first), ...(more.length > 0 && { edits: more }) }
}

/** Whether a hook gave the input back as it was. */
export function isSameInput(a: Fields, b: Fields): boolean {
  return isDeepStrictEqual({ ...a }, { ...b })
}
