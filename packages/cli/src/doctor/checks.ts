import { endsWithin } from '@dsh/harness/kernel'
import { reportOf } from '../report-error.ts'
import { lookAtDefaultModel } from './default-model.ts'
import { lookAtDisk } from './disk.ts'
import { problem } from './finding.ts'
import type { Check, Finding, Findings, Place } from './finding.ts'
import { lookAtGit } from './git.ts'
import { lookAtHome } from './home.ts'
import { lookAtHooks } from './hooks.ts'
import { lookAtIndex } from './index-file.ts'
import { lookAtKeys } from './keys.ts'
import { lookAtNetwork } from './network.ts'
import { lookAtRules } from './permission-rules.ts'
import { lookAtProjections } from './projection-files.ts'
import { lookAtRestoreStore } from './restore-store.ts'
import { lookAtRuntime } from './runtime.ts'
import { lookAtSandbox } from './sandbox.ts'
import { lookAtSessions } from './sessions.ts'
import { lookAtTerminal } from './terminal.ts'
import { lookAtFolder } from './work-folder.ts'

/** In the order of the report. */
export const checks: readonly Check[] = [
  { name: 'node', look: lookAtRuntime },
  { name: 'home', look: lookAtHome },
  { name: 'disk', look: lookAtDisk },
  { name: 'folder', look: lookAtFolder },
  { name: 'sessions', look: lookAtSessions },
  { name: 'index', look: lookAtIndex },
  { name: 'values', look: lookAtProjections },
  { name: 'restore', look: lookAtRestoreStore },
  { name: 'keys', look: lookAtKeys },
  { name: 'model', look: lookAtDefaultModel },
  { name: 'network', look: lookAtNetwork },
  { name: 'git', look: lookAtGit },
  { name: 'sandbox', look: lookAtSandbox },
  { name: 'rules', look: lookAtRules },
  { name: 'hooks', look: lookAtHooks },
  { name: 'terminal', look: lookAtTerminal },
]

const longestMs = 10_000

/** What one check found. Never rejects: whatever a check fails at is a problem of its own. */
export async function find({ name, look }: Check, place: Place): Promise<readonly Finding[]> {
  const found = await lookInTime(look, place).catch(failed)
  return found.map(finding => ({ check: name, ...finding }))
}

async function lookInTime(look: Check['look'], place: Place): Promise<Findings> {
  let found: Findings = []
  const work = (async () => {
    found = await look(place)
  })()
  if (place.isDeep) await work
  else if (!(await endsWithin(work, longestMs)))
    return [problem('CHECK_TOO_SLOW', `no answer within ${longestMs / 1000} s`, 'look at what it is about')]
  return found
}

function failed(error: unknown): Findings {
  const { code, message, fix } = reportOf(error)
  const isKnown = code !== 'INTERNAL'
  return [problem(isKnown ? code : 'CHECK_FAILED', message, fix ?? 'look at what it names')]
}
