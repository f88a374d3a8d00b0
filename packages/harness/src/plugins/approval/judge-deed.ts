import { isWithin } from '../../kernel/index.ts'
import type { Deed } from './deed.ts'
import type { PermissionRule } from './events.ts'
import { judgeCommand } from './judge-command.ts'
import { coversHost, coversPath, folderToAllow } from './match-effect.ts'
import { subjectText } from './rule.ts'
import { rulesOf } from './rules-in-force.ts'
import type { StoredRule } from './rules-in-force.ts'
import type { ApprovalProposal } from './service.ts'
import { allowedByText, askedByText, deniedByText, sandboxText } from './texts.ts'
import type { Circumstances, Verdict } from './verdict.ts'

type DeedOf<Kind extends Deed['kind']> = Extract<Deed, { kind: Kind }>

/** Pure. Rules first, deny before ask before allow; then the mode. */
export function judgeDeed(deed: Deed, circumstances: Circumstances): Verdict {
  switch (deed.kind) {
    case 'command':
      return judgeCommand(deed, circumstances)
    case 'write':
      return judgeWrite(deed, circumstances)
    case 'fetch':
      return judgeFetch(deed, circumstances)
    case 'foreign':
      return judgeForeign(deed, circumstances)
    case 'program':
      return judgeProgram(circumstances)
  }
}

/** A path that is refused in workspace-write is asked for; in read-only mode nobody is. */
function judgeWrite({ path, named, refusal }: DeedOf<'write'>, circumstances: Circumstances): Verdict {
  const { mode, rules, workspace, isProtected, isOwn } = circumstances
  const needs = refusal === undefined ? {} : ({ grant: 'full-access', isEscape: true } as const)
  for (const effect of ['deny', 'ask'] as const) {
    // Both ways to it count: the name that was asked for, and where its links lead.
    const rule = rulesOf(rules, 'write', effect).find(
      each => coversPath(each.rule, path) || coversPath(each.rule, named),
    )
    if (rule === undefined) continue
    if (effect === 'deny') return { decision: 'deny', because: deniedByText(rule), rule }
    if (mode !== 'read-only') return { decision: 'ask', because: askedByText(rule), rule, ...needs }
  }
  if (refusal === undefined) return { decision: 'allow', because: `${mode} lets it be written` }
  if (mode === 'read-only') return { decision: 'deny', because: refusal }
  if (isOwn(path)) return { decision: 'ask', because: `${path} belongs to dsh itself`, ...needs }
  const rule = rulesOf(rules, 'write', 'allow').find(
    ({ rule: each }) => each.path === path || (coversPath(each, path) && !isProtected(path)),
  )
  if (rule !== undefined)
    return { decision: 'allow', because: allowedByText(rule), rule, grant: 'full-access' }
  const isAlone = isWithin(workspace, path) || isProtected(path)
  const because = isWithin(workspace, path) && !isProtected(path) ? refusal : outsideText(path, workspace)
  const folder = isAlone ? undefined : folderToAllow(path, workspace)
  const paths = folder === undefined ? [path] : [path, folder]
  const proposals = paths.map(each => proposalOf({ effect: 'allow', kind: 'write', path: each }))
  return { decision: 'ask', because, ...needs, proposals }
}

function outsideText(path: string, workspace: string): string {
  return isWithin(workspace, path)
    ? `${path} is protected: it runs or configures something`
    : `${path} is outside of the workspace ${workspace}`
}

function judgeFetch({ url, host }: DeedOf<'fetch'>, circumstances: Circumstances): Verdict {
  const { mode, rules, namedHosts } = circumstances
  if (host === '')
    return { decision: 'deny', because: `"${url}" is no address that could be fetched; give a whole one` }
  const settled = settledBy(rules, 'fetch', rule => coversHost(rule, host))
  if (settled !== undefined) return settled
  if (mode === 'full-access') return { decision: 'allow', because: 'the mode is full-access' }
  if (namedHosts.has(host)) return { decision: 'allow', because: `you named ${host} in this session` }
  return {
    decision: 'ask',
    because: `nobody named ${host} in this session`,
    proposals: [proposalOf({ effect: 'allow', kind: 'fetch', host })],
  }
}

function judgeForeign({ what }: DeedOf<'foreign'>, { mode, rules }: Circumstances): Verdict {
  const settled = settledBy(rules, 'foreign', rule => rule.what === what)
  if (settled !== undefined) return settled
  if (mode === 'full-access') return { decision: 'allow', because: 'the mode is full-access' }
  return {
    decision: 'ask',
    because: `nobody here can look into what ${what} does`,
    proposals: [proposalOf({ effect: 'allow', kind: 'foreign', what })],
  }
}

/** In a sandbox a program computes and calls tools, each of which is judged by itself; else it is as any command. */
function judgeProgram(circumstances: Circumstances): Verdict {
  const { mode, rules, sandbox } = circumstances
  if (sandbox.isReady) return { decision: 'allow', because: 'it runs in the sandbox' }
  const [denied] = rulesOf(rules, 'command', 'deny')
  if (mode === 'full-access' && denied !== undefined) {
    const because = `what the program runs cannot be told, and ${deniedByText(denied)}`
    return { decision: 'deny', because, rule: denied }
  }
  if (mode === 'full-access') return { decision: 'allow', because: 'the mode is full-access' }
  if (mode === 'read-only')
    return { decision: 'deny', because: `no program runs in read-only mode: ${sandboxText(circumstances)}` }
  const because = `it would run with your own rights: ${sandboxText(circumstances)}`
  return { decision: 'ask', because, grant: 'full-access' }
}

/** What the rules of one kind say, the strictest first. */
function settledBy<Kind extends 'fetch' | 'foreign'>(
  rules: readonly StoredRule[],
  kind: Kind,
  covers: (rule: Extract<PermissionRule, { kind: Kind }>) => boolean,
): Verdict | undefined {
  const find = (effect: PermissionRule['effect']): StoredRule | undefined =>
    rulesOf(rules, kind, effect).find(({ rule }) => covers(rule))
  const deny = find('deny')
  if (deny !== undefined) return { decision: 'deny', because: deniedByText(deny), rule: deny }
  const ask = find('ask')
  if (ask !== undefined) return { decision: 'ask', because: askedByText(ask), rule: ask }
  const allow = find('allow')
  return allow && { decision: 'allow', because: allowedByText(allow), rule: allow }
}

function proposalOf(rule: PermissionRule): ApprovalProposal {
  return { text: subjectText(rule), rules: [rule] }
}
