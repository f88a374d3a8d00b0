import type { Session } from '../../core/session/index.ts'
import type { ApprovalConfig } from './config.ts'
import type { Permissions } from './service.ts'

/** What a model is told of the mode it works in. Names no path: paths are foreign text, and this is a template. */
export function describePermissions(
  permissions: Permissions,
  session: Session | undefined,
  { yes }: Pick<ApprovalConfig, 'yes'>,
): string {
  const mode = permissions.modeOf(session)
  const start = `Permission mode: ${mode}.`
  if (mode === 'read-only') return `${start} write, edit and bash are refused.`
  if (mode === 'full-access') return `${start} Nothing is asked or refused.`
  return `${start} write and edit work below the working folder only; ${commands(permissions, session, yes)}`
}

function commands(permissions: Permissions, session: Session | undefined, yes: boolean): string {
  if (permissions.policyOf(session) === 'never') return 'bash is refused.'
  return yes ? 'bash is allowed.' : 'the user is asked before each bash command.'
}
