import { readOptions } from './options.ts'

const address = String.raw`(?:\d+|\$|/(?:\\.|[^\\/\n])*/)`
const range = String.raw`(?:${address}(?:,(?:${address}|[+~]\d+))?!?\s*)?`
const substitution = String.raw`s/(?:\\[^\n]|[^\\/\n])*/(?:\\[^\n]|[^\\/\n])*/[gpiI\d]*`
const command = String.raw`${range}(?:[pd=q]|${substitution})`
/** Scripts of commands that print, drop and substitute; nothing in them opens a file or runs anything. */
const plainScript = new RegExp(String.raw`^\s*${command}(?:\s*[;\n]\s*${command})*\s*;?\s*$`)

const options = {
  flags: 'nErsuz',
  values: 'e',
  longFlags: ['quiet', 'silent', 'regexp-extended', 'separate', 'unbuffered', 'null-data', 'posix'],
  longValues: ['expression'],
}

export function sedReadsOnly(words: readonly (string | undefined)[]): boolean {
  const read = readOptions(words, options)
  if (read === undefined) return false
  const given = read.options
    .filter(([name]) => name === 'e' || name === 'expression')
    .map(([, value]) => value)
  const scripts = given.length > 0 ? given : [words[read.next]]
  const files = words.slice(read.next)
  // GNU sed takes options behind operands too.
  if (files.some(word => word?.startsWith('-') === true && word !== '-')) return false
  return scripts.every(script => script !== undefined && plainScript.test(script))
}
