import { cutText } from '../tools/index.ts'
import { PromptError } from './errors.ts'

export type Variables = Readonly<Record<string, string | undefined>>

const variableName = /^[a-z][a-z0-9_]*$/
const longestShownName = 60

export function isVariableName(name: string): boolean {
  return variableName.test(name)
}

/**
 * `text` with each `{{name}}` replaced. Values are not read again; a `{{` that nothing closes stays. Throws
 * INVALID_VARIABLE, naming `place`, for anything else between braces and for variables without a value.
 */
export function interpolate(text: string, variables: Variables, place: string): string {
  const closed = text.split('}}')
  const rest = closed.pop() ?? ''
  if (closed.length === 0) return text
  const filled = closed.map(piece => {
    const [before = '', ...group] = piece.split('{{')
    return group.length === 0 ? `${piece}}}` : before + valueOf(group.join('{{'), variables, place)
  })
  return filled.join('') + rest
}

function valueOf(name: string, variables: Variables, place: string): string {
  if (!isVariableName(name)) {
    const shown = JSON.stringify(cutText(name, longestShownName))
    throw new PromptError(
      'INVALID_VARIABLE',
      `${place} has ${shown} between {{ and }}, which names no variable`,
    )
  }
  const isKnown = Object.hasOwn(variables, name)
  const value = isKnown ? variables[name] : undefined
  if (value !== undefined) return value
  const names = Object.keys(variables).filter(other => variables[other] !== undefined)
  const list = names.length === 0 ? 'there are none' : `known are ${names.sort().join(', ')}`
  const problem = isKnown ? 'has no value now' : 'is unknown'
  throw new PromptError('INVALID_VARIABLE', `variable "${name}" in ${place} ${problem}; ${list}`)
}
