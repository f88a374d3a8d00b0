import { isFields, isText } from '../../kernel/index.ts'
import type { HookDialect } from './dialect.ts'
import type { HookPoint } from './events.ts'

type Verdict = 'allow' | 'ask' | 'deny'

/** How a hook ended. */
export interface HookExit {
  /** Undefined where it was ended or never ran. */
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** What a hook said, as far as it can be taken at its word. */
export interface HookOutput {
  readonly decision?: Verdict
  /** Of the decision. */
  readonly reason?: string
  /** `continue: false`: no more of this turn, and why. */
  readonly stop?: { readonly reason: string | undefined }
  readonly additionalContext?: string
  readonly systemMessage?: string
  /** In the hook's own terms. */
  readonly updatedInput?: Readonly<Record<string, unknown>>
  /** Why some of it does not count: a hook that was to decide has failed. */
  readonly problem?: string
}

/** Where hooks spoke together: the strongest decision and its reasons, and all that was said beside it. */
export interface MergedOutput {
  readonly decision: Verdict | undefined
  /** Of the hooks that decided so, a blank line between two. */
  readonly reason: string | undefined
  readonly stop: HookOutput['stop']
  readonly contexts: readonly string[]
  readonly messages: readonly string[]
  /** The first one. */
  readonly updatedInput: HookOutput['updatedInput']
}

type Fields = Readonly<Record<string, unknown>>

const verdictKeys = ['continue', 'decision', 'hookSpecificOutput']
const verdictKey = new RegExp(`"(${verdictKeys.join('|')})"`)
/** Of JSON in JSON that a hook gives. */
const mostLevels = 100

/** What the exit, and the JSON or text on standard output, of a hook of `point` say. */
export function decodeHook(
  { exitCode, stdout, stderr }: HookExit,
  point: HookPoint,
  dialect: HookDialect,
): HookOutput {
  if (exitCode === undefined) return {}
  if (exitCode === 2) return { decision: 'deny', ...texts({ reason: stderr.trim() }) }
  if (exitCode !== 0) return { problem: `it exited with ${exitCode}` }
  const text = stdout.trim()
  if (text.startsWith('{')) return decodeJson(text, point, dialect)
  if (holdsVerdict(text)) return { problem: 'its JSON does not begin what it printed' }
  const isContext = text !== '' && dialect.contextFromStdout.has(point)
  return isContext ? { additionalContext: text } : {}
}

/** Whether a line, or all from there on, says in JSON what nobody would say in text alone. */
function holdsVerdict(text: string): boolean {
  if (!verdictKey.test(text)) return false
  const lines = text.split('\n')
  const at = lines.findIndex(line => /^\s*[{[]/.test(line))
  return [lines.slice(at).join('\n'), ...lines.slice(at)].some(isVerdict)
}

function isVerdict(text: string): boolean {
  if (!/^\s*[{[]/.test(text) || !verdictKey.test(text)) return false
  try {
    const value: unknown = JSON.parse(text)
    const entries: readonly unknown[] = Array.isArray(value) ? value : [value]
    return entries.some(entry => isFields(entry) && verdictKeys.some(key => Object.hasOwn(entry, key)))
  } catch {
    return false
  }
}

function decodeJson(text: string, point: HookPoint, dialect: HookDialect): HookOutput {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'it printed broken JSON' }
  }
  // Text that begins with a brace is an object, or no JSON.
  const fields = value as Fields
  const problems = ['permissionDecision', 'updatedInput']
    .filter(name => fields[name] !== undefined)
    .map(name => `${name} is not in hookSpecificOutput`)
  const said = {
    ...readStop(fields, problems),
    ...readDecision(fields, problems),
    ...texts({ systemMessage: textOf(fields, 'systemMessage', problems) }),
    ...readSpecific(fields['hookSpecificOutput'], { point, dialect, problems }),
  }
  return problems.length === 0 ? said : { ...said, problem: problems.join('; ') }
}

function readStop(fields: Fields, problems: string[]): Pick<HookOutput, 'stop'> {
  const go = fields['continue']
  if (go === undefined || go === true) return {}
  if (go === false) return { stop: { reason: textOf(fields, 'stopReason', problems) } }
  problems.push(`continue is ${shown(go)}`)
  return {}
}

function readDecision(fields: Fields, problems: string[]): HookOutput {
  const { decision } = fields
  const reason = textOf(fields, 'reason', problems)
  if (decision === undefined || decision === null) return {}
  if (decision === 'block') return { decision: 'deny', ...texts({ reason }) }
  if (decision === 'approve') return { decision: 'allow', ...texts({ reason }) }
  problems.push(`decision is ${shown(decision)}`)
  return {}
}

interface Reading {
  readonly point: HookPoint
  readonly dialect: HookDialect
  readonly problems: string[]
}

/** What is meant for another event is no answer to this one. */
function readSpecific(specific: unknown, { point, dialect, problems }: Reading): HookOutput {
  if (specific === undefined || specific === null) return {}
  if (!isFields(specific)) {
    problems.push(`hookSpecificOutput is ${shown(specific)}`)
    return {}
  }
  const { hookEventName, updatedInput } = specific
  if (hookEventName !== point) {
    problems.push(`hookEventName is ${shown(hookEventName)}, not "${point}"`)
    return {}
  }
  const additionalContext = textOf(specific, 'additionalContext', problems)
  const isInput = updatedInput !== undefined && updatedInput !== null
  if (isInput && !isFields(updatedInput)) problems.push(`updatedInput is ${shown(updatedInput)}`)
  const isDeep = isDeeper(updatedInput, mostLevels)
  if (isDeep) problems.push(`updatedInput is nested more than ${mostLevels} levels deep`)
  if (specific['decision'] !== undefined) problems.push('decision is in hookSpecificOutput')
  return {
    ...readPermission(specific, { point, dialect, problems }),
    ...texts({ additionalContext }),
    ...(isFields(updatedInput) && !isDeep && { updatedInput }),
  }
}

function readPermission(specific: Fields, { dialect, problems }: Reading): HookOutput {
  const decision = specific['permissionDecision']
  const reason = textOf(specific, 'permissionDecisionReason', problems)
  if (decision === undefined || decision === null) return {}
  if (decision !== 'allow' && decision !== 'deny' && decision !== 'ask') {
    problems.push(`permissionDecision is ${shown(decision)}`)
    return {}
  }
  return dialect.decisions.has(decision) ? { decision, ...texts({ reason }) } : {}
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some(each => isDeeper(each, levels - 1))
}

/** Undefined, with a problem, where there is something else than text. */
function textOf(fields: Fields, name: string, problems: string[]): string | undefined {
  const value = fields[name]
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  problems.push(`${name} is ${shown(value)}`)
  return undefined
}

/** Only what says something. */
function texts<Name extends string>(
  given: Readonly<Record<Name, string | undefined>>,
): { readonly [Key in Name]?: string } {
  const entries = Object.entries<string | undefined>(given).filter(([, text]) => isText(text))
  return Object.fromEntries(entries) as { readonly [Key in Name]?: string }
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'an object' : JSON.stringify(value)
}

const ranks: readonly Verdict[] = ['deny', 'ask', 'allow']

/** `outputs` in the order of their hooks. */
export function mergeOutputs(outputs: readonly HookOutput[]): MergedOutput {
  const decision = ranks.find(rank => outputs.some(output => output.decision === rank))
  const reasons = outputs.flatMap(output => (output.decision === decision ? (output.reason ?? []) : []))
  return {
    decision,
    reason: decision === undefined || reasons.length === 0 ? undefined : reasons.join('\n\n'),
    stop: outputs.find(({ stop }) => stop !== undefined)?.stop,
    contexts: outputs.flatMap(({ additionalContext }) => additionalContext ?? []),
    messages: outputs.flatMap(({ systemMessage }) => systemMessage ?? []),
    updatedInput: outputs.find(({ updatedInput }) => updatedInput !== undefined)?.updatedInput,
  }
}
