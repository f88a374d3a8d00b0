import { execFileSync } from 'node:child_process'

/** Why tests of Python are left out here; false where they run, which is wherever CI is set. */
export function skipWithoutPython(): string | false {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore', timeout: 10_000 })
    return false
  } catch {
    return process.env['CI'] === 'true' ? false : 'there is no python3'
  }
}
