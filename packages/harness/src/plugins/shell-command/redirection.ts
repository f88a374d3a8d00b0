import type { HereDoc, HereString, Redirection } from 'unbash'
import type { ShellRedirection, ShellRedirectionKind } from './program.ts'
import { readWord } from './word.ts'

const kinds: Readonly<Record<string, ShellRedirectionKind>> = {
  '>': 'write',
  '>|': 'write',
  '&>': 'write',
  '>>': 'append',
  '&>>': 'append',
  '<': 'read',
  '<>': 'both',
}

export function redirectionOf(node: Redirection): ShellRedirection {
  if (node.type !== 'Redirect') return { kind: 'text', target: undefined, stem: '', ...inputOf(node) }
  if (node.target === undefined) throw new SyntaxError('a redirection has no target')
  const { value: target, stem } = readWord(node.target)
  const isCopy = node.operator === '>&' || node.operator === '<&'
  if (isCopy && target !== undefined && /^(\d+-?|-)$/.test(target)) return { kind: 'duplicate', target, stem }
  // A copy to anything else is a file to write, or fails.
  return { kind: kinds[node.operator] ?? 'write', target, stem }
}

function inputOf(node: HereDoc | HereString): Pick<ShellRedirection, 'text'> {
  const text = node.type === 'HereDoc' ? node.body.text : node.target && readWord(node.target).value
  return text === undefined ? {} : { text }
}
