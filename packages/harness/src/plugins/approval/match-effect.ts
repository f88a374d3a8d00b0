import { dirname, isAbsolute, resolve } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import { commandsOf } from '../shell-command/index.ts'
import type { ShellProgram } from '../shell-command/index.ts'
import type { FetchRule, WriteRule } from './events.ts'

/** Whether a rule speaks of `path`; one that asks or denies speaks of all below its path in any case. */
export function coversPath({ effect, path: own }: WriteRule, path: string): boolean {
  if (path === own) return true
  const isFolder = own.endsWith('/') || effect !== 'allow'
  return isFolder && isWithin(resolve(own), resolve(path))
}

/**
 * Whether a rule speaks of `host`. One that asks or denies speaks of all of its ports unless it names one, and of the
 * host with and without www, as redirects lead from one to the other.
 */
export function coversHost({ effect, host: own }: FetchRule, host: string): boolean {
  if (effect === 'allow') return isHostOf(own, host)
  const whole = host.replace(/\.+(?=$|:\d+$)/, '')
  const asked = /:\d+$/.test(own) ? whole : whole.replace(/:\d+$/, '')
  return isHostOf(own, asked) || isHostOf(withoutWww(own), withoutWww(asked))
}

function isHostOf(own: string, host: string): boolean {
  return own.startsWith('*.') ? host.endsWith(own.slice(1)) : host === own
}

function withoutWww(host: string): string {
  return host.replace(/^www\./, '')
}

/** The files that redirections of `program` are known to write, absolute, links not resolved. */
export function filesWrittenBy(
  program: ShellProgram | undefined,
  folder: string | undefined,
): readonly string[] {
  const redirections = program === undefined ? [] : commandsOf(program).flatMap(each => each.redirections)
  return redirections.flatMap(({ kind, target }) => {
    const isWritten = kind === 'write' || kind === 'append' || kind === 'both'
    if (!isWritten || target === undefined || (folder === undefined && !isAbsolute(target))) return []
    return [resolve(folder ?? '/', target)]
  })
}

/** The folder of `path` as a rule names it; undefined where that is as good as everything: `root` lies in it. */
export function folderToAllow(path: string, root: string): string | undefined {
  const folder = dirname(path)
  return isWithin(folder, root) || dirname(folder) === '/' ? undefined : `${folder}/`
}
