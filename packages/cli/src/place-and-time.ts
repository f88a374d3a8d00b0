import { homedir } from 'node:os'

/** `2026-11-30 14:05`, in the zone of the machine. */
export function localTime(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000)
  return date.toISOString().slice(0, 16).replace('T', ' ')
}

/** The folder as people write it: `~/…` below their own. */
export function shortFolder(folder: string): string {
  const own = ownFolder()
  return own !== undefined && folder.startsWith(`${own}/`) ? `~${folder.slice(own.length)}` : folder
}

/** The home folder of the person; undefined for a user whom the system does not know. */
export function ownFolder(): string | undefined {
  try {
    return homedir()
  } catch {
    return undefined
  }
}
