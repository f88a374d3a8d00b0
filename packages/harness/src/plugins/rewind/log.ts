import './events.ts'
import type { EventTypeDefinition } from '../../core/session/index.ts'
import { isFields, isPositive, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/** Notes about files, so a reader that does not know them loses nothing of the conversation. */
export const rewindEvents: readonly EventTypeDefinition[] = [
  { type: 'restore/point', ignorable: true, validate: assertPoint },
  { type: 'rewind/applied', ignorable: true, validate: assertApplied },
]

const scopes: readonly unknown[] = ['conversation', 'files', 'both']

function assertPoint(data: unknown): void {
  const { turn, step, by, after, commit, parent, files, insertions, deletions, changed } = fieldsOf(data)
  if (!isPositive(turn)) throw wrong('turn', turn)
  if (step !== undefined && !isPositive(step)) throw wrong('step', step)
  if (by !== undefined && (by !== 'user' || step !== undefined)) throw wrong('by', by)
  if (!isCount(after)) throw wrong('after', after)
  assertCommit('commit', commit)
  if (parent !== undefined) assertCommit('parent', parent)
  if (!isCount(files)) throw wrong('files', files)
  if (!isCount(insertions)) throw wrong('insertions', insertions)
  if (!isCount(deletions)) throw wrong('deletions', deletions)
  if (changed !== undefined) assertPaths('changed', changed)
}

function assertApplied(data: unknown): void {
  const { scope, from, to, commit, backup, files, written, kept } = fieldsOf(data)
  if (!scopes.includes(scope)) throw wrong('scope', scope)
  assertPlace('from', from)
  assertPlace('to', to)
  if (commit !== undefined) assertCommit('commit', commit)
  if (backup !== undefined) assertCommit('backup', backup)
  assertPaths('files', files)
  assertPaths('kept', kept)
  if (!isCount(written)) throw wrong('written', written)
}

function fieldsOf(data: unknown): Fields {
  if (!isFields(data)) throw new TypeError('data is no record')
  return data
}

function assertPlace(field: string, value: unknown): void {
  const { session, seq } = isFields(value) ? value : {}
  if (!isText(session)) throw wrong(`${field}.session`, session)
  if (seq !== -1 && !isCount(seq)) throw wrong(`${field}.seq`, seq)
}

/** Commits go into commands: nothing else may stand in their place. */
function assertCommit(field: string, value: unknown): void {
  if (typeof value !== 'string' || !/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(value)) throw wrong(field, value)
}

function assertPaths(field: string, value: unknown): void {
  const isList = Array.isArray(value) && value.every(item => isFields(item) && isText(item['path']))
  if (!isList) throw wrong(field, value)
}

function isCount(value: unknown): boolean {
  return value === 0 || isPositive(value)
}

function wrong(field: string, value: unknown): TypeError {
  return new TypeError(`${field} is ${JSON.stringify(value)}`)
}
