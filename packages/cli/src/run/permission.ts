import type {} from '@dsh/harness/plugins/approval'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import type { Session } from '@dsh/harness/session'
import { canAsk } from '../person.ts'
import { inert } from '../text.ts'
import type { Job } from './job.ts'

/** Whether a yes can come from somewhere: `--yes` is one, but none to leave the sandbox. */
type Answers = 'asked' | 'yes' | 'nobody'

/**
 * Says what tools may do. Whether a sandbox works is known with the first command that needs one, and told then: to find
 * it out takes a process, which a run that starts has no time for.
 */
export function tellPermission(session: Session, { ctx, options, io }: Job): void {
  const { hasNetwork } = ctx.sandboxPolicy
  const answers = options.yes ? 'yes' : canAsk(io) ? 'asked' : 'nobody'
  io.err.line(permissionLine(ctx.sandboxPolicy.modeOf(session), { answers, hasNetwork }))
  let isTold = false
  ctx.on('approval/unconfined', (_agent, reason) => {
    if (isTold) return
    isTold = true
    io.err.line(inert(`note: ${unconfinedText(ctx.sandboxPolicy.modeOf(session), answers)}: ${reason}`))
  })
  ctx.on('sandbox/planted', (_agent, paths) => io.err.line(inert(`note: ${plantedText(paths)}`)))
}

const moreTexts: Readonly<Record<Answers, string>> = {
  asked: 'you are asked for more',
  yes: 'what is asked is allowed, but nothing beyond the sandbox',
  nobody: 'more is refused',
}

function plantedText(paths: readonly string[]): string {
  return `${paths.map(path => JSON.stringify(path)).join(', ')}: a command recorded this as a repository of its own that may run programs; look at its .git/config and hooks before you use git here, or pass --ignore-submodules=all to git status`
}

interface Reach {
  readonly answers: Answers
  readonly hasNetwork: boolean
}

export function permissionLine(mode: SandboxMode, { answers, hasNetwork }: Reach): string {
  if (mode === 'full-access') return 'full-access: nothing is asked, and commands run with your own rights'
  const start =
    mode === 'read-only'
      ? 'read-only: no file is changed; commands run in a sandbox, where one works,'
      : 'workspace-write: files of the folder may be changed; commands run in a sandbox, where one works,'
  return `${start} ${hasNetwork ? 'with' : 'without'} the network; ${moreTexts[answers]}`
}

const bareTexts: Readonly<Record<Answers, string>> = {
  asked: 'you are asked before commands that may do more than read, which run with your own rights',
  yes: 'commands run with your own rights',
  nobody: 'commands that may do more than read are refused',
}

export function unconfinedText(mode: SandboxMode, answers: Answers): string {
  return `no sandbox works here, so ${bareTexts[mode === 'read-only' ? 'nobody' : answers]}`
}
