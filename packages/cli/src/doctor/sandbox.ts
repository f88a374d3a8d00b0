import { lookForSandbox } from '@dsh/harness/plugins/sandbox'
import type { SandboxReadiness } from '@dsh/harness/plugins/sandbox'
import { note, ok } from './finding.ts'
import type { Findings } from './finding.ts'

/** What holds commands of a model to their mode. */
export async function lookAtSandbox(): Promise<Findings> {
  return judgeSandbox(await lookForSandbox())
}

export function judgeSandbox(readiness: SandboxReadiness): Findings {
  if (readiness.isReady) return [ok(readiness.runner)]
  const detail = `none: you are asked before each command, and it runs with your own rights; ${readiness.reason}`
  return [note('NO_SANDBOX', detail)]
}
