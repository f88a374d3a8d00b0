import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { readRule } from '@dsh/harness/plugins/approval'
import type { PermissionRule } from '@dsh/harness/plugins/approval'
import { widerAccesses } from '@dsh/harness/tools'
import type { WiderAccess } from '@dsh/harness/tools'
import { CliError, usageError } from '../../errors.ts'
import { workFolder } from '../../run/folder.ts'
import type { Arguments, CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { accessOf } from './access.ts'
import { ruleLine, withRules } from './rules.ts'

type Effect = PermissionRule['effect']

export function adding(effect: Effect): CommandBody {
  return async (args, io) => {
    const rule = { ...(await ruleOf(effect, args, io)), ...(await folderOf(args, io)) }
    const read = readRule(rule)
    if ('problem' in read) throw usageError('INVALID_RULE', read.problem, helpOf(effect))
    return await withRules(io, async file => {
      for (const { id, rule: filed } of await file.add([read]))
        io.out.line(args.values.json === true ? JSON.stringify({ id, ...filed }) : ruleLine(filed, id))
      return 0
    })
  }
}

const subjects = ['write', 'host', 'foreign'] as const

async function ruleOf(effect: Effect, { values, words }: Arguments, { cwd }: Io): Promise<object> {
  const given = [
    ...(words.length > 0 ? ['WORDS'] : []),
    ...subjects.filter(name => values[name] !== undefined).map(name => `--${name}`),
  ]
  if (given.length === 0)
    throw usageError(
      'MISSING_WORD',
      `dsh permission ${effect} needs WORDS, --write, --host or --foreign`,
      helpOf(effect),
    )
  if (given.length > 1)
    throw usageError(
      'OPTION_CONFLICT',
      `one rule speaks of one thing, found ${given.join(' and ')}`,
      helpOf(effect),
    )
  const { write, host, foreign, access, exact } = values
  const isCommand = words.length > 0
  if (!isCommand && (access !== undefined || exact === true))
    throw usageError(
      'OPTION_CONFLICT',
      `${access === undefined ? '--exact' : '--access'} is for commands, not for ${given[0]}`,
      helpOf(effect),
    )
  if (typeof write === 'string')
    return { effect, kind: 'write', path: await pathOf(resolve(cwd, write), write) }
  if (typeof host === 'string') return { effect, kind: 'fetch', host: hostOf(host) }
  if (typeof foreign === 'string') return { effect, kind: 'foreign', what: foreign }
  const prefix = await prefixOf(words, effect)
  if (effect !== 'allow') return { effect, kind: 'command', prefix }
  return {
    effect,
    kind: 'command',
    prefix,
    access: neededAccess(access, words),
    ...(exact === true && { exact }),
  }
}

async function folderOf({ values }: Arguments, { cwd }: Io): Promise<{ readonly folder?: string }> {
  const { directory, everywhere } = values
  if (everywhere !== true)
    return { folder: await workFolder(cwd, typeof directory === 'string' ? directory : undefined) }
  if (directory === undefined) return {}
  throw usageError(
    'OPTION_CONFLICT',
    '-C and --everywhere name two places, give one of them',
    'dsh permission --help',
  )
}

/** In quotes the words of one command may be one. */
async function prefixOf(words: readonly string[], effect: Effect): Promise<readonly string[]> {
  const [only = ''] = words
  if (words.length > 1 || !/[\s;&|$'"\\]/.test(only)) return words
  const { commandsOf, coversCommand, parseShell } = await import('@dsh/harness/plugins/shell-command')
  const program = await parseShell(only)
  const [part, ...others] = program?.isComplete === true ? commandsOf(program) : []
  const known = part?.words.filter(word => word !== undefined) ?? []
  const isAll = part !== undefined && others.length === 0 && known.length === part.words.length
  if (isAll && part.assignments.length === 0 && coversCommand(known, part)) return known
  throw usageError('NOT_ONE_COMMAND', `"${only}" is not the plain beginning of one command`, helpOf(effect))
}

function neededAccess(access: string | boolean | undefined, words: readonly string[]): WiderAccess {
  const fix = `dsh permission allow --access ${widerAccesses.join('|')} -- ${words.join(' ')}`
  if (access === undefined)
    throw usageError(
      'MISSING_OPTION',
      'a rule that allows a command needs --access: in the sandbox it runs anyway',
      fix,
    )
  return accessOf(access, fix)
}

/** Where links lead, with `/` at the end of a folder. */
async function pathOf(path: string, typed: string): Promise<string> {
  const real = await realPath(path)
  const isFolder =
    typed.endsWith('/') ||
    (await stat(real).then(
      info => info.isDirectory(),
      () => false,
    ))
  return isFolder && !real.endsWith('/') ? `${real}/` : real
}

/** As far as it is there. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' || dirname(path) === path)
      throw new CliError('BAD_PATH', `the path "${path}" cannot be followed: ${code}`, {
        cause: error,
        fix: `ls -ld ${path}`,
      })
    return join(await realPath(dirname(path)), basename(path))
  }
}

/** An address stands for its host. */
function hostOf(typed: string): string {
  const wild = typed.startsWith('*.') ? '*.' : ''
  const plain = typed.slice(wild.length)
  const host = URL.parse(plain.includes('://') ? plain : `https://${plain}`)?.host ?? ''
  return host === '' ? typed : `${wild}${host}`
}

function helpOf(effect: Effect): string {
  return `dsh permission ${effect} --help`
}
