import { resolve } from 'node:path'
import type { WiderAccess } from '../../core/tools/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import { commandsOf, isReadOnly } from '../shell-command/index.ts'
import type { ShellCommand, ShellProgram } from '../shell-command/index.ts'
import type { Deed } from './deed.ts'
import type { CommandRule, WriteRule } from './events.ts'
import { allowanceOf, restrictionOf, ruleFor } from './match-command.ts'
import type { Restriction } from './match-command.ts'
import { coversPath, filesWrittenBy } from './match-effect.ts'
import { nameOf, subjectText } from './rule.ts'
import { rulesOf } from './rules-in-force.ts'
import type { RulesOfKind, StoredRule } from './rules-in-force.ts'
import type { ApprovalProposal } from './service.ts'
import { askedByText, deniedByText, sandboxText } from './texts.ts'
import type { Circumstances, Verdict } from './verdict.ts'

type Command = Extract<Deed, { kind: 'command' }>

/** What a command needs beyond its mode. */
interface Needs {
  readonly access: WiderAccess | undefined
  /** What it asks for itself, where its mode gives less. */
  readonly wanted: WiderAccess | undefined
  /** Whether to allow it is to let it out of a sandbox that works, or out of a mode in which nothing is written. */
  readonly isEscape: boolean
}

export function judgeCommand(deed: Command, circumstances: Circumstances): Verdict {
  const needs = needsOf(deed, circumstances)
  const restricted = restrict(deed, needs, circumstances)
  if (restricted !== undefined) return restricted
  if (circumstances.mode === 'full-access') return { decision: 'allow', because: 'the mode is full-access' }
  if (needs.access === undefined) return { decision: 'allow', because: 'it runs in the sandbox' }
  if (needs.wanted === undefined && onlyReads(deed, circumstances))
    return { decision: 'allow', because: 'it only reads', grant: needs.access }
  return judgeByRules(deed, { ...needs, access: needs.access }, circumstances)
}

const rank: Readonly<Record<SandboxMode | WiderAccess, number>> = {
  'read-only': 0,
  'workspace-write': 1,
  network: 2,
  'full-access': 3,
}

function needsOf({ wants }: Command, { mode, sandbox }: Circumstances): Needs {
  const wanted = wants !== undefined && rank[wants.access] > rank[mode] ? wants.access : undefined
  if (mode === 'full-access') return { access: undefined, wanted: undefined, isEscape: false }
  if (sandbox.isReady) return { access: wanted, wanted, isEscape: wanted !== undefined }
  // Without a sandbox nothing holds a command back, whatever it asks for.
  return { access: 'full-access', wanted, isEscape: mode === 'read-only' }
}

/** What deny and ask rules say; undefined where they say nothing. */
function restrict(deed: Command, needs: Needs, circumstances: Circumstances): Verdict | undefined {
  const { rules, mode } = circumstances
  const denied = restrictionOf(flat(rulesOf(rules, 'command', 'deny')), deed.program)
  if (denied?.match === 'yes') return denyBy(denied.rule.stored, denied)
  const files = filesWrittenBy(deed.program, deed.folder)
  const kept = rulesOf(rules, 'write', 'deny').find(({ rule }) => coversAny(rule, files))
  if (kept !== undefined) return { decision: 'deny', because: deniedByText(kept), rule: kept }
  const asked = restrictionOf(flat(rulesOf(rules, 'command', 'ask')), deed.program)
  const doubt = denied ?? asked
  if (doubt === undefined) {
    const file = rulesOf(rules, 'write', 'ask').find(({ rule }) => coversAny(rule, files))
    return file && { decision: 'ask', because: askedByText(file), rule: file, ...consequences(needs) }
  }
  const { stored } = doubt.rule
  // Nobody is asked in full-access for what a rule only may forbid, and nothing forbidden gets through.
  if (denied !== undefined && mode === 'full-access')
    return { decision: 'deny', because: doubtText(denied, 'write the command out'), rule: stored }
  const because = doubt.match === 'yes' ? askedByText(stored, doubt.part?.text) : doubtText(doubt)
  return { decision: 'ask', because, rule: stored, ...consequences(needs) }
}

function coversAny(rule: WriteRule, files: readonly string[]): boolean {
  return files.some(file => coversPath(rule, file))
}

/** A rule of commands that knows where it stands. */
type Placed = CommandRule & { readonly stored: StoredRule }

function flat(rules: readonly RulesOfKind<'command'>[]): readonly Placed[] {
  return rules.map(stored => ({ ...stored.rule, stored }))
}

function denyBy(rule: StoredRule, { part }: Restriction<Placed>): Verdict {
  return { decision: 'deny', because: deniedByText(rule, part?.text), rule }
}

function doubtText({ rule, part }: Restriction<Placed>, advice?: string): string {
  const what = part === undefined ? 'what it runs' : `what \`${part.text}\` runs`
  const verb = rule.effect === 'deny' ? 'denies' : 'asks for'
  const text = `${what} cannot be told, and ${nameOf(rule.stored)} ${verb} \`${subjectText(rule.stored.rule)}\``
  return advice === undefined ? text : `${text}; ${advice}`
}

function consequences({ access, isEscape }: Needs): Pick<Verdict, 'grant' | 'isEscape'> {
  return { ...(access && { grant: access }), ...(isEscape && { isEscape }) }
}

/** And reads nothing that the sandbox would hide. */
function onlyReads(
  { program, folder = '/', isTyped }: Command,
  { workspace, mayReachSecrets }: Circumstances,
): boolean {
  const cwd = folder === workspace ? workspace : undefined
  if (isTyped === true || program === undefined || !isReadOnly(program, { cwd })) return false
  const parts = commandsOf(program)
  const isChanging = parts.some(({ assignments }) => assignments.length > 0)
  return parts.every(({ words, stems, redirections }) => {
    const named = [
      ...words.slice(1).map((value, index) => ({ value, stem: stems[index + 1] ?? '' })),
      ...redirections.flatMap(({ kind, target: value, stem }) => (kind === 'read' ? [{ value, stem }] : [])),
    ]
    return named.every(word => {
      if (word.value === undefined && isChanging) return false
      return !pathsIn(word).some(path => mayReachSecrets(resolve(folder, path)))
    })
  })
}

interface KnownWord {
  readonly value: string | undefined
  /** What it surely begins with. */
  readonly stem: string
}

/** What a word may name: itself, or what stands behind an option. Of one that ends in a pattern, the folder. */
function pathsIn({ value, stem }: KnownWord): readonly string[] {
  const known = value ?? stem.slice(0, stem.lastIndexOf('/') + 1)
  if (!known.startsWith('-')) return [known]
  return [known.indexOf('='), known.indexOf('/') - 1].flatMap(at => (at < 0 ? [] : [known.slice(at + 1)]))
}

function judgeByRules(
  deed: Command,
  needs: Needs & { readonly access: WiderAccess },
  circumstances: Circumstances,
): Verdict {
  const { rules, mode, workspace } = circumstances
  const { program, folder } = deed
  const cwd = folder === undefined || folder === workspace ? workspace : undefined
  const need = {
    access: needs.access,
    isReadingFree: needs.wanted === undefined && deed.isTyped !== true,
    cwd,
  }
  const allowing = flat(rulesOf(rules, 'command', 'allow'))
  const allowance = program && allowanceOf(allowing, program, need)
  if (allowance !== undefined && 'rules' in allowance) {
    const [rule] = allowance.rules
    const because = allowance.rules.map(
      each => `${nameOf(each.stored)} allows \`${subjectText(each.stored.rule)}\``,
    )
    return {
      decision: 'allow',
      because: because.join(', '),
      ...(rule && { rule: rule.stored }),
      grant: needs.access,
    }
  }
  if (mode === 'read-only' && needs.wanted === undefined)
    return { decision: 'deny', because: readOnlyText(circumstances) }
  const uncovered = allowance?.uncovered ?? []
  return {
    decision: 'ask',
    because: questionText(deed, needs, uncovered, circumstances),
    ...consequences(needs),
    proposals: program?.isComplete === true ? proposalsFor(uncovered, needs.access) : [],
  }
}

function readOnlyText(circumstances: Circumstances): string {
  const why = sandboxText(circumstances)
  return `only commands that surely read run in read-only mode: ${why}; tell the user what you would do`
}

const wantedTexts: Readonly<Record<WiderAccess, string>> = {
  'workspace-write': 'to write in the workspace',
  network: 'the network',
  'full-access': 'to run without a sandbox',
}

function questionText(
  { program, wants }: Command,
  { wanted }: Needs,
  uncovered: readonly ShellCommand[],
  circumstances: Circumstances,
): string {
  const parts = [
    wanted !== undefined && `it wants ${wantedTexts[wanted]}: ${wants?.justification ?? ''}`,
    !circumstances.sandbox.isReady && `it would run with your own rights: ${sandboxText(circumstances)}`,
    partsText(program, uncovered),
  ]
  return parts.filter(part => typeof part === 'string').join('; ')
}

/** Which parts the question is about, where it is not about all. */
function partsText(
  program: ShellProgram | undefined,
  uncovered: readonly ShellCommand[],
): string | undefined {
  if (program === undefined) return 'what it runs cannot be told'
  if (uncovered.length === 0 || uncovered.length === commandsOf(program).length) return undefined
  return `not covered: ${uncovered.map(({ text }) => `\`${text}\``).join(', ')}`
}

function proposalsFor(uncovered: readonly ShellCommand[], access: WiderAccess): readonly ApprovalProposal[] {
  const rules = uncovered.map(part => ruleFor(part, access))
  if (rules.length === 0 || !rules.every(rule => rule !== undefined)) return []
  const byText = new Map(rules.map(rule => [subjectText(rule), rule]))
  return [{ text: [...byText.keys()].join('; '), rules: [...byText.values()] }]
}
