import { promises as dns } from 'node:dns'
import { isIP } from 'node:net'
import { unlessAborted } from '../../kernel/index.ts'
import type { Address } from './wire.ts'

/** All addresses of a name, in the order in which they are to be tried. Rejects where there are none. */
export type Resolve = (host: string) => Promise<readonly Address[]>

/** As the system resolves names, its hosts file included. */
export const systemResolve: Resolve = async host =>
  (await dns.lookup(host, { all: true, verbatim: true })).map(({ address, family }) => ({
    address,
    family: family === 6 ? 6 : 4,
  }))

/** An address is its own; a name is looked up for as long as `signal` allows. */
export async function addressesOf(
  host: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly Address[]> {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family: family === 6 ? 6 : 4 }]
  return await unlessAborted(resolve(host), signal)
}
