import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'

/** What the policy has to know of the machine and of who uses it. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly pid: number
  /** Undefined where there are no such numbers. */
  readonly uid: number | undefined
  readonly userHome: string
  /** The folder that the program was started in. */
  readonly startFolder: string
}

export function thisMachine(): Machine {
  return {
    platform: process.platform,
    pid: process.pid,
    uid: process.getuid?.(),
    userHome: homedir(),
    startFolder: process.cwd(),
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Undefined where it cannot be read, for whatever reason. */
export function readTextNow(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
