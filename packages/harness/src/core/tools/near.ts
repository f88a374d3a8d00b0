import { nearest } from '../../kernel/index.ts'
import { cutText } from './text.ts'

const longestShownName = 80
const mostNear = 3
const mostListed = 20

/** What a model is told that called `name`, which is none of `names`. */
export function unknownToolText(name: string, names: readonly string[]): string {
  const text = `unknown tool ${JSON.stringify(cutText(name, longestShownName))}`
  if (names.length === 0) return `${text}; there are no tools`
  // What is longer than any name is no slip of the pen.
  if (name.length > longestShownName) return `${text}; the tools are ${list(names)}`
  const near = nearNames(name, names)
  if (near.length > 0) return `${text}; did you mean ${near.map(other => `"${other}"`).join(' or ')}?`
  const typo = nearest(name, names)
  return typo === '' ? `${text}; the tools are ${list(names)}` : text + typo
}

/** Names that differ in case, separators or a namespace before them: "functions.Bash" is near "bash". */
function nearNames(name: string, names: readonly string[]): string[] {
  const last = name.split(/[.:/]/).at(-1) ?? name
  const wanted = [bare(last), bare(name)]
  if (wanted.includes('')) return []
  const same = names.filter(other => wanted.includes(bare(other)))
  const ending = names.filter(other => other.toLowerCase().endsWith(`__${last.toLowerCase()}`))
  const found = same.length > 0 ? same : ending
  return found.filter((_, index) => index < mostNear)
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}

function list(names: readonly string[]): string {
  const shown = names.filter((_, index) => index < mostListed).join(', ')
  return names.length > mostListed ? `${shown} and ${names.length - mostListed} more` : shown
}
