/** What tells one process of one machine from all others, ever. */
export interface ProcessIdentity {
  readonly pid: number
  /** When the process started, in whatever unit its system has; tells a pid that was given again. */
  readonly start: string
  /** Changes with each start of the machine. */
  readonly boot: string
  readonly host: string
  /** The set of processes that can see each other's pids. */
  readonly space: string
}

export interface Processes {
  self(): ProcessIdentity
  /** True only where it is certain; a process that cannot be seen may still run. */
  isDead(identity: ProcessIdentity): boolean
}

/** What the system knows of one pid now. */
export type ProcessState = 'gone' | 'unknown' | { readonly start: string }

/** Decides from identities alone; `look` asks for a pid of this machine, boot and space. */
export function isProvablyDead(
  other: ProcessIdentity,
  self: ProcessIdentity,
  look: (pid: number) => ProcessState,
): boolean {
  if (other.host !== self.host) return false
  if (other.boot !== self.boot) return other.boot !== '' && self.boot !== ''
  if (other.space !== self.space) return false
  const state = look(other.pid)
  if (state === 'gone') return true
  return state !== 'unknown' && other.start !== '' && state.start !== other.start
}
