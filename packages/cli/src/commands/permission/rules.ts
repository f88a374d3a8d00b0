import { join } from 'node:path'
import { openRulesFile, rulesFileName, ruleText } from '@dsh/harness/plugins/approval'
import type { PermissionRule } from '@dsh/harness/plugins/approval'
import { reportOf } from '../../report-error.ts'
import { CliError } from '../../errors.ts'
import { inert, unbroken } from '../../text.ts'
import type { Io } from '../../io.ts'

type RulesFile = Awaited<ReturnType<typeof openRulesFile>>

export function rulesPath({ home }: Pick<Io, 'home'>): string {
  return join(home, rulesFileName)
}

/** Does `job` with the rules of this home; what is wrong with them is told, and what cannot be done has its way out. */
export async function withRules<T>(io: Io, job: (file: RulesFile) => Promise<T>): Promise<T> {
  const file = await openRulesFile(rulesPath(io))
  try {
    const { problems } = await file.read()
    for (const problem of problems) io.err.line(`note: ${inert(problem)}`)
    return await job(file)
  } catch (error) {
    const { code, message, fix: own } = reportOf(error)
    const fix = own === undefined ? fixes[code]?.(file.path) : undefined
    throw fix === undefined ? error : new CliError(code, message, { cause: error, fix })
  }
}

const fixes: Readonly<Record<string, (path: string) => string>> = {
  PERMISSIONS_BROKEN: path => `edit ${path}, or move it away`,
  EACCES: path => `ls -l ${path}`,
}

/** `r1  allow git push …, with the network, in /srv/shop`. */
export function ruleLine(rule: PermissionRule, id: string): string {
  return unbroken(`${id.padEnd(4)} ${ruleText(rule)}`)
}
