import { forEachChild } from 'unbash'
import type { SyntaxNode } from 'unbash'

interface Span {
  readonly pos: number
  readonly end: number
}

/** What may stand between the parts of a node, besides blanks and comments. */
const between: Readonly<Partial<Record<SyntaxNode['type'], readonly string[]>>> = {
  Script: [';', '&', '\n'],
  CompoundList: [';', '&', '\n'],
  Statement: [';', '&', '\n'],
  AndOr: ['&&', '||', '\n'],
  Pipeline: ['|', '|&', '!', 'time', '-p', '--', '\n'],
  Command: [],
  Redirected: [],
  If: ['if', 'then', 'elif', 'else', 'fi', ';', '&', '\n'],
  Elif: ['elif', 'then', ';', '&', '\n'],
  While: ['while', 'until', 'do', 'done', ';', '&', '\n'],
  For: ['for', 'in', 'do', 'done', '{', '}', ';', '&', '\n'],
  Select: ['select', 'in', 'do', 'done', '{', '}', ';', '&', '\n'],
  Subshell: ['(', ')', ';', '&', '\n'],
  BraceGroup: ['{', '}', ';', '&', '\n'],
  Coproc: ['coproc', '\n'],
  Function: ['function', '(', ')', '\n'],
  Case: ['case', 'in', 'esac', '(', ')', ';;', ';&', ';;&', ';', '&', '\n'],
  CaseItem: ['(', ')', '|', ';;', ';&', ';;&', ';', '&', '\n'],
}
/** One bracket of a kind, where there is one. */
const single: ReadonlySet<string> = new Set(['Subshell', 'Function'])
const token = /\\\n|[ \t]+|\n|;;&|;;|;&|&&|\|\||\|&|[;&|!(){}]|[^\s;&|!(){}]+/gy

/** The bodies of here-documents, which stand where the line goes on. */
export function bodiesIn(script: SyntaxNode): readonly Span[] {
  const found: Span[] = []
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'HereDoc') found.push({ pos: node.body.pos, end: node.closing?.end ?? node.body.end })
    const isForeign = node.type === 'Script' && node.source !== undefined && node !== script
    if (!isForeign) forEachChild(node, visit)
  }
  visit(script)
  return found
}

/**
 * Throws where the parser passed something of `node` over. It mends what it does not understand, and what it leaves out
 * the shell would not.
 */
export function assertNoGap(node: SyntaxNode, text: string, bodies: readonly Span[]): void {
  const allowed = between[node.type]
  if (allowed === undefined) return
  const seen = new Map<string, number>()
  for (const gap of gapsOf(node, bodies)) {
    for (const each of tokensOf(text.slice(gap.pos, gap.end))) {
      if (!allowed.includes(each)) throw new SyntaxError(`the parser passed over "${each}"`)
      seen.set(each, (seen.get(each) ?? 0) + 1)
    }
  }
  const isTwice = single.has(node.type) && ((seen.get('(') ?? 0) > 1 || (seen.get(')') ?? 0) > 1)
  if (isTwice) throw new SyntaxError('the parser passed over a bracket')
}

function gapsOf(node: SyntaxNode, bodies: readonly Span[]): readonly Span[] {
  const parts: Span[] = bodies.filter(({ pos }) => pos >= node.pos)
  forEachChild(node, child => void parts.push(child))
  const gaps: Span[] = []
  let at = node.pos
  for (const { pos, end } of parts.toSorted((a, b) => a.pos - b.pos)) {
    if (pos >= node.end) break
    if (pos > at) gaps.push({ pos: at, end: pos })
    at = Math.max(at, end)
  }
  if (at < node.end) gaps.push({ pos: at, end: node.end })
  return gaps
}

function tokensOf(gap: string): readonly string[] {
  const plain = gap.replaceAll(/(^|[\s;&|()])#[^\n]*/g, '$1')
  return (plain.match(token) ?? []).filter(each => !/^(?:[ \t]+|\\\n)$/.test(each))
}
