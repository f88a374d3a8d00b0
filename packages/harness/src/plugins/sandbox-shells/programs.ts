import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'

/** What it takes to keep a sandbox, by their absolute paths. */
export interface Programs {
  readonly bash: string
  readonly mkfifo: string
  readonly setsid: string
}

/** Not by PATH: mkfifo runs outside of any sandbox. */
const folders = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin']

/** Undefined where one of them is missing. */
export function findPrograms(): Programs | undefined {
  const [bash, mkfifo, setsid] = ['bash', 'mkfifo', 'setsid'].map(find)
  return bash && mkfifo && setsid ? { bash, mkfifo, setsid } : undefined
}

function find(name: string): string | undefined {
  return folders.map(folder => join(folder, name)).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
