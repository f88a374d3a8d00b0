import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'

/** No configuration, index or table that is read here is as large. */
const mostBytes = 256 * 2 ** 20

/** What the policy has to know of the machine and of who uses it. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly pid: number
  /** Undefined where there are no such numbers. */
  readonly uid: number | undefined
  /** Undefined for a user whom the system does not know. */
  readonly userHome: string | undefined
  /** The folder that the program was started in; undefined where it is gone or may not be read. */
  readonly startFolder: string | undefined
}

/** Folders are asked for when they are first needed: a program may do without. */
export function thisMachine(): Machine {
  return {
    platform: process.platform,
    pid: process.pid,
    uid: process.getuid?.(),
    get userHome() {
      return whereThere(homedir)
    },
    get startFolder() {
      return whereThere(() => process.cwd())
    },
  }
}

function whereThere(look: () => string): string | undefined {
  try {
    return look() || undefined
  } catch {
    return undefined
  }
}

/** The file of the program that runs this code. */
export function runtimeFile(): string {
  return process.execPath
}

/** Whose rights a process has that this one starts, besides those of its user. */
export function ownGroups(): readonly number[] {
  const gid = process.getegid?.()
  return [...(process.getgroups?.() ?? []), ...(gid === undefined ? [] : [gid])]
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
  return readBytesNow(path)?.toString('utf8')
}

/** Nobody who makes a pipe or links a device there holds this up. */
export function readBytesNow(path: string): Buffer | undefined {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = fstatSync(file)
    return stats.isFile() && stats.size <= mostBytes ? readFileSync(file) : undefined
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
