import { host } from './env.ts'
import type { Argv } from './language.ts'

export interface ProcessLimits {
  /** Of the processor, whatever the program waits for meanwhile. */
  readonly cpuSeconds: number
  /** Further options of `ulimit`. */
  readonly others: readonly string[]
}

/** What a shell says of a process that the kernel ended for the processor time it used. */
export const cpuLimitExitCode = 152

/**
 * `argv` under limits that the kernel keeps: no core file, no byte into any file, and processor time. The program can
 * catch the signal of the first limit on processor time, and cannot catch that of the second, a second later.
 */
export function limited(argv: Argv, { cpuSeconds, others }: ProcessLimits): Argv {
  if (!host.hasShell) return argv
  const limits = ['-c 0', '-f 0', ...others, `-S -t ${cpuSeconds}`, `-H -t ${cpuSeconds + 1}`]
  // A limit that a system does not know is left out.
  const script = limits.map(limit => `ulimit ${limit} 2>/dev/null; `).join('')
  return ['/bin/sh', '-c', `${script}exec "$@"`, 'sh', ...argv]
}
