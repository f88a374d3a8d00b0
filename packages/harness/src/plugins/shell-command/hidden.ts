import type { ParameterExpansionPart, SyntaxNode, TestBinaryExpression, Word } from 'unbash'

const arithmeticTests = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge'])
const harmlessOperations = new Set(['Remove', 'Replace', 'CaseModification', 'Names'])

/**
 * Whether the shell may take a value for code here that no reader sees: arithmetic evaluates the values of variables,
 * subscripts among them, and some expansions run what a variable holds.
 */
export function isHidden(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'ArithmeticWord':
      return !isNumber(node.value)
    case 'ArithmeticCommand':
    case 'ArithmeticExpansion':
      return node.expression === undefined
    case 'ParameterExpansion':
      return isHiddenParameter(node)
    case 'TestBinary':
      return isHiddenTest(node)
    case 'TestUnary':
      return node.operator === '-v' || node.operator === '-R'
    case 'Assignment':
      return node.index !== undefined && !isNumber(node.index.value)
    case 'ArrayValue':
      return node.elements.some(({ text }) => text.startsWith('[') && !/^\[\d+\]/.test(text))
    case 'AnsiCQuoted':
      // A plain sh ends the text at the first quote.
      return node.text.slice(2, -1).includes("'")
    default:
      return false
  }
}

function isHiddenParameter({ prefix, index, operation, parameter }: ParameterExpansionPart): boolean {
  if (prefix === '!' || parameter === '') return true
  if (index !== undefined && !isNumber(index.value) && index.value !== '@' && index.value !== '*') return true
  if (operation === undefined) return false
  if (operation.type === 'Default') return operation.operator.includes('=')
  if (operation.type === 'Slice') return ![operation.offset, operation.length].every(isNumericWord)
  return !harmlessOperations.has(operation.type)
}

function isHiddenTest({ operator, left, right }: TestBinaryExpression): boolean {
  return arithmeticTests.has(operator) && ![left, right].every(isNumericWord)
}

function isNumericWord(word: Word | undefined): boolean {
  return word === undefined || isNumber(word.value)
}

function isNumber(text: string): boolean {
  return /^\s*-?\d+\s*$/.test(text)
}
