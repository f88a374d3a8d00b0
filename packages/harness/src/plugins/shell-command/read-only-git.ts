import { readOptions } from './options.ts'
import type { OptionSpec } from './options.ts'

type Words = readonly (string | undefined)[]

/** What stands before the deed and changes nothing of what runs. */
const globalOptions: OptionSpec = {
  flags: 'P',
  longFlags: ['no-pager', 'no-optional-locks', 'literal-pathspecs', 'no-replace-objects', 'no-lazy-fetch'],
}

/** Options of any of these deeds that write a file or run a program, also shortened. */
const harmful = [
  'output',
  'ext-diff',
  'textconv',
  'open-files-in-pager',
  'show-signature',
  'filters',
  'exec',
  'upload-pack',
]

const readers = new Set([
  'status',
  'log',
  'diff',
  'show',
  'rev-parse',
  'ls-files',
  'ls-tree',
  'cat-file',
  'blame',
  'describe',
  'shortlog',
  'rev-list',
  'merge-base',
  'name-rev',
  'for-each-ref',
  'show-ref',
  'diff-tree',
  'diff-index',
  'diff-files',
  'whatchanged',
  'count-objects',
  'check-ignore',
  'version',
  'show-branch',
  'cherry',
  'grep',
])

const listOptions: OptionSpec = {
  flags: 'arvlni0123456789',
  longFlags: [
    'all',
    'remotes',
    'verbose',
    'list',
    'show-current',
    'no-column',
    'no-color',
    'ignore-case',
    'contains',
    'merged',
    'no-merged',
  ],
  longValues: [
    'sort',
    'format',
    'points-at',
    'color',
    'column',
    'abbrev',
    'contains',
    'no-contains',
    'merged',
    'no-merged',
  ],
}

const deeds: Readonly<Record<string, (rest: Words) => boolean>> = {
  branch: isListing,
  tag: isListing,
  remote: rest => rest.length === 0 || (rest.length === 1 && rest[0] === '-v') || rest[0] === 'get-url',
  config: isConfigRead,
  stash: ([first]) => first === 'list' || first === 'show',
  worktree: ([first]) => first === 'list',
  reflog: rest => rest.length === 0 || rest[0] === 'show',
}

/** Whether git, given these words, only reads; what a repository configures is another question. */
export function gitReadsOnly(words: Words): boolean {
  const read = readOptions(words, globalOptions)
  const deed = read === undefined ? undefined : words[read.next]
  if (read === undefined || deed === undefined) return false
  const rest = words.slice(read.next + 1)
  if (rest.some(word => isHarmful(word, deed))) return false
  if (readers.has(deed)) return true
  return Object.hasOwn(deeds, deed) && deeds[deed]?.(rest) === true
}

/** Formats that have a signature checked, by a program that the configuration names. */
const checking = /%G|%\(signature/

function isHarmful(word: string | undefined, deed: string): boolean {
  if (word === undefined) return false
  if (checking.test(word)) return true
  if (!word.startsWith('-')) return false
  if (!word.startsWith('--'))
    return /^-[a-zA-Z]*o/.test(word) && deed !== 'ls-files' ? true : word.startsWith('-O')
  const name = word.slice(2).split('=')[0] ?? ''
  return name !== '' && harmful.some(each => each.startsWith(name))
}

/** Names of branches and tags are patterns only where a list is asked for. */
function isListing(rest: Words): boolean {
  const read = readOptions(rest, listOptions, 0)
  if (read === undefined) return false
  const isList = read.options.some(([name]) => name === 'l' || name === 'list')
  return isList || read.next === rest.length
}

function isConfigRead(rest: Words): boolean {
  const [first, ...others] = rest.filter(
    word => !/^--(?:global|local|system|show-origin|show-scope|name-only)$/.test(word ?? ''),
  )
  if (others.some(word => word === undefined || word.startsWith('-'))) return false
  return first !== undefined && /^(?:--get|--get-all|--get-regexp|--list|-l|get|list)$/.test(first)
}
