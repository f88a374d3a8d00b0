import { existsSync } from 'node:fs'

/** Why tests of the sandbox are left out here; false where they run, which is wherever CI is set. */
export function skipWithoutBwrap(): string | false {
  const isThere = ['/usr/bin/bwrap', '/bin/bwrap', '/usr/local/bin/bwrap'].some(path => existsSync(path))
  return isThere || process.env['CI'] === 'true' ? false : 'bubblewrap is not installed'
}
