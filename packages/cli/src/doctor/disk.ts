import { statfs } from 'node:fs/promises'
import { platform } from 'node:os'
import { quoted } from '../errors.ts'
import { size } from '../text.ts'
import { nearestFolder } from './home.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** What the system tells of the file system that a folder is on. */
export interface Space {
  readonly type: number
  readonly bsize: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

/** Less is used up by one long task. */
const lowBytes = 50_000_000
const scarceBytes = 1_000_000_000

/** Linux numbers of file systems that lie on other machines, or are gone with the power. */
const remote = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
])
const inMemory = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
])

/** Whether there is room where the home is, or will be. */
export async function lookAtDisk({ home }: Place): Promise<Findings> {
  return judgeSpace(await statfs(await nearestFolder(home)), home)
}

export function judgeSpace({ type, bsize, bavail, files, ffree }: Space, home: string): Findings {
  const free = bsize * bavail
  const look = `df -h ${quoted(home)}`
  if (free < lowBytes) return [problem('DISK_LOW', `${roomText(free)} free where ${home} is`, look)]
  if (files > 0 && ffree === 0)
    return [problem('DISK_NO_FILES', `no file can be made where ${home} is`, `df -i ${quoted(home)}`)]
  return [
    free < scarceBytes
      ? note('DISK_SCARCE', `${roomText(free)} free where ${home} is`, look)
      : ok(`${roomText(free)} free`),
    ...(platform() === 'linux' ? kindOf(type) : []),
  ]
}

function roomText(bytes: number): string {
  return bytes < 1e9 ? size(bytes) : `${(bytes / 1e9).toFixed(1)} GB`
}

function kindOf(type: number): Findings {
  const other = remote.get(type)
  if (other !== undefined)
    return [
      note('DISK_REMOTE', `the home is on ${other}: what another machine has open stays locked when it dies`),
    ]
  const volatile = inMemory.get(type)
  return volatile === undefined
    ? []
    : [note('DISK_IN_MEMORY', `the home is on ${volatile}: nothing of it is there after the next start`)]
}
