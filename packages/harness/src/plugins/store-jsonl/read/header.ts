import type { HeaderLine } from '../../persistence/index.ts'
import type { FileSystem } from '../files/file-system.ts'
import { scanHeader } from './scan.ts'

const usualBytes = 4096
const mostBytes = 256 * 1024

/** Reads the header frame at the start of a log file. Gives the reason where there is none. */
export async function readHeader(fs: FileSystem, path: string): Promise<HeaderLine | string> {
  const file = await fs.open(path, 'read')
  try {
    const start = await file.read(0, usualBytes)
    const header = scanHeader(start)
    if (typeof header !== 'string' || start.length < usualBytes) return header
    return scanHeader(await file.read(0, mostBytes))
  } finally {
    await file.close()
  }
}
