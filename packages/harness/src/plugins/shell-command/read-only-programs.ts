import { readOptions } from './options.ts'
import type { OptionSpec } from './options.ts'
import type { ShellCommand } from './program.ts'
import { gitReadsOnly } from './read-only-git.ts'
import { sedReadsOnly } from './read-only-sed.ts'
import { systemName } from './unwrap.ts'

type Words = readonly (string | undefined)[]
type Check = (words: Words) => boolean

/** No word makes one of these write or run anything. */
const readers = new Set([
  'cat',
  'head',
  'tail',
  'wc',
  'ls',
  'dir',
  'pwd',
  'echo',
  'true',
  'false',
  ':',
  'basename',
  'dirname',
  'realpath',
  'readlink',
  'stat',
  'du',
  'df',
  'uname',
  'whoami',
  'id',
  'groups',
  'nproc',
  'arch',
  'tty',
  'uptime',
  'free',
  'cut',
  'tr',
  'nl',
  'tac',
  'rev',
  'paste',
  'join',
  'comm',
  'cmp',
  'fold',
  'expand',
  'unexpand',
  'cksum',
  'sum',
  'md5sum',
  'sha1sum',
  'sha224sum',
  'sha256sum',
  'sha384sum',
  'sha512sum',
  'b2sum',
  'base64',
  'od',
  'hexdump',
  'strings',
  'which',
  'type',
  'seq',
  'ps',
  'printenv',
  'sleep',
  'grep',
  'egrep',
  'fgrep',
  'jq',
  'exit',
  'return',
  'break',
  'continue',
  'column',
  'cal',
  'diff',
])

const alone = new Set(['env', 'hostname', 'locale'])
const versioned = new Set([
  'node',
  'npm',
  'python',
  'python3',
  'git',
  'bash',
  'make',
  'gcc',
  'g++',
  'clang',
  'curl',
  'rg',
  'java',
  'ruby',
  'perl',
])
const testOperator = /^-[vR]$/
const shellFlags = /^[-+][eux]+$/

const dateOptions: OptionSpec = {
  flags: 'uR',
  values: 'dr',
  longFlags: ['utc', 'universal', 'rfc-email', 'iso-8601'],
  longValues: ['date', 'reference', 'iso-8601', 'rfc-3339'],
}
const uniqOptions: OptionSpec = {
  flags: 'cdDiuz',
  values: 'fsw',
  longFlags: ['count', 'repeated', 'ignore-case', 'unique'],
  longValues: ['skip-fields', 'skip-chars', 'check-chars'],
}

const checks: Readonly<Record<string, Check>> = {
  cd: words => words.length <= 2,
  command: words => words[1] === '-v' || words[1] === '-V',
  date: words => operandsOf(words, dateOptions)?.every(word => word?.startsWith('+') === true) === true,
  fd: words => lacks(words, 'xX', ['exec', 'exec-batch']),
  fdfind: words => lacks(words, 'xX', ['exec', 'exec-batch']),
  file: words => lacks(words, 'C', ['compile']),
  find: words => !words.some(word => /^-(?:exec|execdir|ok|okdir|delete|fls|fprint.*)$/.test(word ?? '')),
  git: gitReadsOnly,
  printf: words => words[1]?.startsWith('-') === false,
  rg: words => lacks(words, '', ['pre', 'hostname-bin']),
  sed: sedReadsOnly,
  set: ([, ...flags]) => flags.every((flag = '', at) => isShellFlag(flag, flags[at - 1])),
  sort: words => lacks(words, 'oT', ['output', 'compress-program', 'files0-from', 'temporary-directory']),
  test: isPlainTest,
  '[': isPlainTest,
  tree: words => lacks(words, 'oR', ['output']),
  uniq: words => (operandsOf(words, uniqOptions)?.length ?? 2) <= 1,
}

/** Whether no word can make the program do more than to read, so that unknown ones do not matter. */
export function takesAnyWord({ words: [program] }: ShellCommand): boolean {
  return program !== undefined && readers.has(systemName(program))
}

/** Whether the program, given these words, only reads. Words that are unknown are no options. */
export function readsOnly({ words }: ShellCommand): boolean {
  const [first] = words
  if (first === undefined) return false
  const program = systemName(first)
  if (readers.has(program)) return true
  if (words.length === 2 && words[1] === '--version' && versioned.has(program)) return true
  if (words.length === 1 && alone.has(program)) return true
  return Object.hasOwn(checks, program) && checks[program]?.(words) === true
}

/** Whether none of the options is there, be it in a cluster or shortened. */
function lacks(words: Words, letters: string, names: readonly string[]): boolean {
  return !words.slice(1).some((word = '') => {
    if (!word.startsWith('-')) return false
    if (!word.startsWith('--')) return Array.from(letters).some(letter => word.includes(letter))
    const name = word.slice(2).split('=')[0] ?? ''
    return name !== '' && names.some(each => each.startsWith(name))
  })
}

function operandsOf(words: Words, spec: OptionSpec): Words | undefined {
  const read = readOptions(words, spec)
  return read === undefined ? undefined : words.slice(read.next)
}

function isShellFlag(flag: string, before: string | undefined): boolean {
  if (/^[-+]o$/.test(before ?? '') || /^-[eux]+o$/.test(before ?? '')) return flag === 'pipefail'
  return shellFlags.test(flag) || /^[-+][eux]*o$/.test(flag)
}

function isPlainTest(words: Words): boolean {
  return words.every(word => word !== undefined && !testOperator.test(word))
}
