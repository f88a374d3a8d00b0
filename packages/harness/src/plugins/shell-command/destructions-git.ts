import { readOptions } from './options.ts'
import type { Loss } from './loss.ts'
import type { ShellCommand } from './program.ts'

type Words = readonly (string | undefined)[]

interface Deed {
  readonly rest: Words
  /** Where git works, relative to where it is started. */
  readonly repository: string
  readonly has: (pattern: RegExp) => boolean
  /** What is no option, before and behind `--`. */
  readonly operands: Words
  readonly behind: Words | undefined
}

const globalOptions = {
  flags: 'pP',
  values: 'cC',
  longFlags: ['no-pager', 'paginate', 'bare', 'no-optional-locks', 'literal-pathspecs', 'no-replace-objects'],
  longValues: ['git-dir', 'work-tree', 'namespace', 'config-env', 'exec-path'],
}

/** Losses without paths are those of a whole repository. */
const discardAll: Loss = { kind: 'discard', isDeep: true }

/** Rewrites what is checked out: what was there before is found by its commit alone. */
const head: Loss = { kind: 'refs', refs: ['HEAD'] }

const readers: Readonly<Record<string, (deed: Deed) => readonly Loss[]>> = {
  reset: readReset,
  checkout: readCheckout,
  switch: deed =>
    deed.has(/^(?:-[a-zA-Z]*f|--force|--discard-changes)/)
      ? [discardAll]
      : branchMoved(deed, /^-C|^--force-create/, 'C'),
  restore: readRestore,
  clean: deed => (deed.has(/^-[a-zA-Z]*n|^--dry-run$/) ? [] : [{ kind: 'delete', isDeep: true }]),
  stash: readStash,
  branch: deed => (deed.has(/^-[a-zA-Z]*[dDfMC]|^--(?:delete|force)$/) ? [refsOf(deed, 'refs/heads/')] : []),
  tag: deed => (deed.has(/^-[a-zA-Z]*[df]|^--(?:delete|force)$/) ? [refsOf(deed, 'refs/tags/')] : []),
  push: deed => (isForced(deed) ? [{ kind: 'remote' }] : []),
  rebase: deed => (deed.has(/^--(?:abort|skip|quit)$/) ? [discardAll, head] : [head]),
  commit: deed => (deed.has(/^--amend$/) ? [head] : []),
  merge: deed => (deed.has(/^--abort$/) ? [discardAll] : []),
  'cherry-pick': deed => (deed.has(/^--(?:abort|skip)$/) ? [discardAll] : []),
  revert: deed => (deed.has(/^--(?:abort|skip)$/) ? [discardAll] : []),
  am: deed => (deed.has(/^--(?:abort|skip)$/) ? [discardAll] : []),
  rm: deed => (deed.has(/^--cached$/) ? [] : [{ kind: 'delete', paths: pathsOf(deed), isDeep: true }]),
  mv: deed =>
    deed.has(/^-[a-zA-Z]*f|^--force$/) ? [{ kind: 'overwrite', paths: pathsOf(deed).slice(-1) }] : [],
  worktree: ({ rest: [first], operands }) =>
    first === 'remove' ? [{ kind: 'delete', paths: operands.slice(1), isDeep: true }] : [],
  'checkout-index': deed => (deed.has(/^-[a-zA-Z]*f|^--force$/) ? [discardAll] : []),
  'read-tree': deed => (deed.has(/^-[a-zA-Z]*u|^--reset$/) ? [discardAll] : []),
  submodule: deed => (deed.has(/^-[a-zA-Z]*f|^--force$/) ? [discardAll] : []),
  'filter-branch': () => [head],
  'filter-repo': () => [discardAll, { kind: 'objects' }],
  'update-ref': ({ operands }) => [{ kind: 'refs', refs: operands.slice(0, 1).filter(isWord) }],
  gc: deed => (deed.has(/^--prune(?:=(?:now|all))?$/) ? [{ kind: 'objects' }] : []),
  repack: deed => (deed.has(/^-[a-zA-Z]*a/) && deed.has(/^-[a-zA-Z]*d/) ? [{ kind: 'objects' }] : []),
  fetch: readFetch,
  pull: readFetch,
  archive: outputOf,
  diff: outputOf,
  log: outputOf,
  show: outputOf,
  bundle: deed =>
    deed.rest[0] === 'create'
      ? [{ kind: 'overwrite', paths: inFolder(deed, deed.operands.slice(1, 2)) }]
      : [],
  prune: deed => (deed.has(/^-n$|^--dry-run$/) ? [] : [{ kind: 'objects' }]),
  reflog: ({ rest: [first] }) => (first === 'expire' || first === 'delete' ? [{ kind: 'objects' }] : []),
}

/** What a command of git may destroy. */
export function gitLosses({ words }: ShellCommand): readonly Loss[] {
  const read = readOptions(words, globalOptions)
  const name = read === undefined ? undefined : words[read.next]
  // A deed of its own making may be anything.
  if (read?.options.some(([option, value]) => option === 'c' && /^alias\./i.test(value ?? '')) === true)
    return [{ kind: 'delete', isDeep: true, repository: '' }]
  if (read === undefined || name === undefined || !Object.hasOwn(readers, name)) return []
  const rest = words.slice(read.next + 1)
  const end = rest.indexOf('--')
  const before = end < 0 ? rest : rest.slice(0, end)
  const folders = read.options.filter(([option]) => option === 'C' || option === 'work-tree')
  const repository = folders.map(([, folder]) => folder ?? '').join('/')
  const losses = readers[name]?.({
    rest,
    repository,
    has: pattern => before.some(word => word !== undefined && pattern.test(word)),
    operands: before.filter(word => word?.startsWith('-') !== true),
    behind: end < 0 ? undefined : rest.slice(end + 1),
  })
  return (losses ?? []).map(loss => (loss.paths === undefined ? { ...loss, repository } : loss))
}

function readReset(deed: Deed): readonly Loss[] {
  const isHard = deed.has(/^--(?:hard|merge|keep)$/)
  const moved = deed.operands.length > 0 && deed.behind === undefined ? [head] : []
  return isHard ? [discardAll, ...moved] : moved
}

function readCheckout(deed: Deed): readonly Loss[] {
  const { behind, operands } = deed
  if (deed.has(/^-[a-zA-Z]*f|^--force$/)) return [discardAll]
  if (behind !== undefined) return behind.length === 0 ? [] : [discard(deed, behind)]
  if (deed.has(/^-[bB]|^--orphan$/)) return branchMoved(deed, /^-B/, 'B')
  if (deed.has(/^--pathspec-from-file/)) return [discardAll]
  // A branch, or files: those that are there tell.
  return operands.length === 0 ? [] : [discard(deed, operands)]
}

function readRestore(deed: Deed): readonly Loss[] {
  const { behind = [], operands } = deed
  const isIndexOnly = deed.has(/^--staged$|^-[a-zA-Z]*S/) && !deed.has(/^--worktree$|^-[a-zA-Z]*W/)
  if (isIndexOnly) return []
  if (deed.has(/^--pathspec-from-file/)) return [discardAll]
  return [discard(deed, [...operands, ...behind])]
}

function readStash({ rest: [first] }: Deed): readonly Loss[] {
  if (first === 'drop' || first === 'clear') return [{ kind: 'refs', refs: ['refs/stash'] }]
  const putsAway = first === undefined || first === 'push' || first === 'save' || first.startsWith('-')
  return putsAway ? [discardAll] : []
}

/** The name stands behind the option, or in the same word. */
function branchMoved(deed: Deed, forced: RegExp, letter: string): readonly Loss[] {
  if (!deed.has(forced)) return []
  const option = deed.rest.find(word => word?.startsWith(`-${letter}`) === true)
  const attached = option?.slice(2) ?? ''
  const names = attached === '' ? deed.operands.slice(0, 1).filter(isWord) : [attached]
  return [{ kind: 'refs', refs: names.map(name => `refs/heads/${name}`) }]
}

/** Branches that are put where another repository has them, whatever they were. */
function readFetch(deed: Deed): readonly Loss[] {
  const isAnyForced = deed.has(/^-[a-zA-Z]*f|^--force$/)
  const refs = deed.operands.filter(isWord).flatMap(word => {
    const [source = '', target] = word.split(':')
    if (target === undefined || target === '' || !(isAnyForced || source.startsWith('+'))) return []
    return [target.startsWith('refs/') ? target : `refs/heads/${target}`]
  })
  return refs.length === 0 ? [] : [{ kind: 'refs', refs }]
}

/** A file that the deed writes: `--output=FILE`, and `-o FILE` where it has that. */
function outputOf(deed: Deed): readonly Loss[] {
  const option = /^(?:-o|--output)(?:=?)(.*)$/
  const paths = deed.rest.flatMap((word, index) => {
    const given = word === undefined ? undefined : option.exec(word)?.[1]
    if (given === undefined || word?.startsWith('--output-') === true) return []
    return [given === '' ? deed.rest[index + 1] : given]
  })
  return paths.length === 0 ? [] : [{ kind: 'overwrite', paths: inFolder(deed, paths) }]
}

function refsOf({ operands }: Deed, prefix: string): Loss {
  return { kind: 'refs', refs: operands.filter(isWord).map(name => prefix + name) }
}

function isForced(deed: Deed): boolean {
  const { operands } = deed
  if (deed.has(/^-[a-zA-Z]*[fd]|^--(?:force|delete|mirror|prune|force-with-lease)/)) return true
  return operands.slice(1).some(word => word === undefined || /^[+:]/.test(word))
}

/** Patterns of git may mean anything in the repository. */
function discard(deed: Deed, words: Words): Loss {
  const isPattern = words.some(word => word !== undefined && /^:|[*?[]/.test(word))
  if (isPattern) return discardAll
  return { kind: 'discard', paths: inFolder(deed, words), isDeep: true }
}

function pathsOf(deed: Deed): Words {
  return inFolder(deed, [...deed.operands, ...(deed.behind ?? [])])
}

function inFolder({ repository }: Deed, words: Words): Words {
  return repository === ''
    ? words
    : words.map(word => (word === undefined || word.startsWith('/') ? word : `${repository}/${word}`))
}

function isWord(word: string | undefined): word is string {
  return word !== undefined
}
