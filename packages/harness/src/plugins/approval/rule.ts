import { isAbsolute } from 'node:path'
import { widerAccesses } from '../../core/tools/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import { isFields, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { PermissionRule } from './events.ts'
import type { StoredRule } from './rules-in-force.ts'

const effects: readonly unknown[] = ['allow', 'ask', 'deny'] satisfies PermissionRule['effect'][]

const commonFields = ['effect', 'kind', 'folder']
/** The field that says what a rule of the kind speaks of, and those that it may have besides. */
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  command: ['prefix', 'exact', 'access'],
  write: ['path'],
  fetch: ['host'],
  foreign: ['what'],
}

/** A rule as it stands, or what is wrong with it. A field that is not known may narrow the rule, so it is an error. */
export function readRule(value: unknown): PermissionRule | { readonly problem: string } {
  if (!isFields(value)) return { problem: 'it is no object' }
  const problem = commonProblem(value) ?? subjectProblem(value)
  return problem === undefined ? (value as unknown as PermissionRule) : { problem }
}

export function isRule(value: unknown): value is PermissionRule {
  return !('problem' in readRule(value))
}

function commonProblem(value: Fields): string | undefined {
  const { effect, kind, folder } = value
  if (!effects.includes(effect)) return `effect: ${shown(effect)} is none of allow, ask, deny`
  const fields = typeof kind === 'string' && Object.hasOwn(fieldsOf, kind) ? fieldsOf[kind] : undefined
  if (fields === undefined) return `kind: ${shown(kind)} is none of ${Object.keys(fieldsOf).join(', ')}`
  if (folder !== undefined && !isPath(folder)) return `folder: ${shown(folder)} is no absolute path`
  const known = [...commonFields, ...fields]
  const extra = Object.keys(value).find(key => !known.includes(key))
  return extra === undefined ? undefined : `${extra}: a rule of kind ${String(kind)} has no such field`
}

function subjectProblem(rule: Fields): string | undefined {
  const { kind, path, host, what } = rule
  if (kind === 'write') return isPath(path) ? undefined : `path: ${shown(path)} is no absolute path`
  if (kind === 'fetch') return isHost(host) ? undefined : `host: ${shown(host)} is no host`
  if (kind === 'foreign') return isText(what) ? undefined : `what: ${shown(what)} is no name`
  return commandProblem(rule)
}

function commandProblem({ effect, prefix, exact, access }: Fields): string | undefined {
  if (!Array.isArray(prefix) || !isText(prefix[0]) || !prefix.every(word => typeof word === 'string'))
    return `prefix: ${shown(prefix)} is no list of words`
  if (exact !== undefined && exact !== true) return `exact: ${shown(exact)} is not true`
  if (access !== undefined && !widerAccesses.includes(access as WiderAccess))
    return `access: ${shown(access)} is none of ${widerAccesses.join(', ')}`
  if (effect === 'allow' || (exact ?? access) === undefined) return undefined
  return `${exact === undefined ? 'access' : 'exact'}: only a rule that allows has it`
}

function isPath(value: unknown): boolean {
  return isText(value) && isAbsolute(value) && !value.includes('\0')
}

/** As `URL.host` gives it; `*.` in front stands for everything below. */
function isHost(value: unknown): boolean {
  if (!isText(value)) return false
  const host = value.startsWith('*.') ? value.slice(2) : value
  return !host.includes('*') && URL.parse(`https://${host}/`)?.host === host
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** What a rule speaks of, without its effect: `git push …, with the network`, `write /srv/x/`. */
export function subjectText(rule: PermissionRule): string {
  switch (rule.kind) {
    case 'command': {
      const words = rule.prefix.map(quotedWord).join(' ')
      const access = rule.access === undefined ? '' : `, ${accessTexts[rule.access]}`
      return `${words}${rule.exact === true ? '' : ' …'}${access}`
    }
    case 'write':
      return `write ${rule.path}`
    case 'fetch':
      return `fetch from ${rule.host}`
    case 'foreign':
      return rule.what
  }
}

/** The whole rule: `allow git push …, with the network, in /srv/shop`. */
export function ruleText(rule: PermissionRule): string {
  const where = rule.folder === undefined ? 'everywhere' : `in ${rule.folder}`
  return `${rule.effect} ${subjectText(rule)}, ${where}`
}

const accessTexts: Readonly<Record<WiderAccess, string>> = {
  'workspace-write': 'writing in the workspace',
  network: 'with the network',
  'full-access': 'without a sandbox',
}

function quotedWord(word: string): string {
  return /^[\w@%+=:,./~^-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** What a rule is called where it is named as a reason. */
export function nameOf({ id }: StoredRule): string {
  return id === undefined ? 'what you allowed for this session' : `rule ${id}`
}

/** Whether two rules say the same, wherever each stands. */
export function isSameRule(a: PermissionRule, b: PermissionRule): boolean {
  return canonical(a) === canonical(b)
}

function canonical(rule: PermissionRule): string {
  return JSON.stringify(Object.entries(rule).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
