import { rulesPath } from '../commands/permission/rules.ts'
import { openRulesFile } from '@dsh/harness/plugins/approval'
import { counted } from '../text.ts'
import { ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** Whether each rule that a person gave counts. */
export async function lookAtRules({ home, command }: Place): Promise<Findings> {
  const path = rulesPath({ home })
  const { rules, problems } = await (await openRulesFile(path)).read()
  const broken = problems.map(text => problem('RULE_BROKEN', text, `edit ${path}`))
  return [...broken, ok(`${counted(rules.length, 'rule')} (${command} permission ls)`)]
}
