import { platform } from 'node:os'
import { note, ok } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** Whether signs and colours arrive. */
export async function lookAtTerminal({ env, isTerminal }: Place): Promise<Findings> {
  if (platform() === 'win32') return [ok('the console of Windows')]
  const variable = ['LC_ALL', 'LC_CTYPE', 'LANG'].find(name => env[name])
  const locale = variable === undefined ? '' : (env[variable] ?? '')
  const faults: Findings = [
    ...(/utf-?8/i.test(locale)
      ? []
      : [note('LOCALE_NOT_UTF8', localeText(variable, locale), 'export LC_ALL=C.UTF-8')]),
    ...(isTerminal && (!env['TERM'] || env['TERM'] === 'dumb')
      ? [note('TERM_DUMB', `TERM is ${env['TERM'] || 'not set'}`, 'export TERM=xterm-256color')]
      : []),
  ]
  if (faults.length > 0) return faults
  return [ok([locale, env['TERM'] ?? 'no TERM', ...(isTerminal ? [] : ['no terminal'])].join(' · '))]
}

function localeText(variable: string | undefined, locale: string): string {
  const what = variable === undefined ? 'no locale is set' : `${variable} is ${locale}`
  return `${what}: commands may print other signs than UTF-8`
}
