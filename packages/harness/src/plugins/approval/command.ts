import type { CommandDefinition, CommandResult } from '../../core/commands/index.ts'
import type { Session } from '../../core/session/index.ts'
import { nearest } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { sandboxModes } from '../sandbox/index.ts'
import { subjectText } from './rule.ts'

const hint = '[read-only|workspace-write|full-access|forget]'

/** `/permissions`: shows what the session may do, sets its mode, or takes back what was allowed for it. */
export function permissionsCommand(ctx: Context): CommandDefinition {
  return {
    name: 'permissions',
    description: 'Show or set what tools may do; forget what was allowed for this session',
    input: { hint },
    handler: ({ agent: { session }, rawInput }) => run(ctx, session, rawInput.trim()),
  }
}

function run(ctx: Context, session: Session, word: string): CommandResult {
  if (word === '') return { kind: 'success', text: shown(ctx, session) }
  if (word === 'forget') {
    ctx.approval.forget(session)
    return { kind: 'success', text: 'nothing is allowed for this session any more' }
  }
  const mode = sandboxModes.find(known => known === word)
  if (mode === undefined) {
    const near = nearest(word, [...sandboxModes, 'forget'])
    return { kind: 'error', text: `there is no mode "${word}"${near}: ${hint}` }
  }
  ctx.sandboxPolicy.setMode(session, mode)
  return { kind: 'success', text: `the mode is ${mode} from the next call on` }
}

function shown(ctx: Context, session: Session): string {
  const grants = ctx.approval.grantsOf(session).map(rule => `allowed for this session: ${subjectText(rule)}`)
  const policy = ctx.approval.policyOf(session) === 'ask' ? 'what needs it is asked' : 'nothing is asked'
  return [`the mode is ${ctx.sandboxPolicy.modeOf(session)}; ${policy}`, ...grants].join('\n')
}
