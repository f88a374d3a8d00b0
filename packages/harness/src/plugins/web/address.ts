import { BlockList, isIP } from 'node:net'

/** Says why an address may not be reached; undefined = it may. */
export type JudgeAddress = (address: string) => string | undefined

type Block = readonly [network: string, prefix: number, what: string]

const special4: readonly Block[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'shared by a carrier'],
  ['127.0.0.0', 8, 'this machine'],
  ['168.63.129.16', 32, 'cloud metadata'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'reserved'],
  ['192.0.2.0', 24, 'reserved'],
  ['192.88.99.0', 24, 'reserved'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'reserved'],
  ['198.51.100.0', 24, 'reserved'],
  ['203.0.113.0', 24, 'reserved'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved'],
]

/** Of those addresses that are global otherwise; Teredo lies in 2001::/23, 6to4 is 2002::/16. */
const special6: readonly Block[] = [
  ['2001::', 23, 'reserved'],
  ['2001:db8::', 32, 'reserved'],
  ['2002::', 16, 'a tunnel'],
  ['3fff::', 20, 'reserved'],
]

/** Addresses that stand for one of IPv4, in their last 32 bits. */
const embedding: readonly Block[] = [
  ['::ffff:0:0', 96, 'mapped'],
  ['64:ff9b::', 96, 'translated'],
]

const local6: readonly Block[] = [
  ['::', 128, 'this machine'],
  ['::1', 128, 'this machine'],
  ['fc00::', 7, 'private'],
  ['fe80::', 10, 'link-local'],
  ['fec0::', 10, 'private'],
  ['ff00::', 8, 'multicast'],
]

/**
 * Lets addresses of the public Internet through. An IPv6 address has to be a global one, or to stand for a public one
 * of IPv4: what a later standard sets aside is refused until it is known here.
 */
export const refuseLocal: JudgeAddress = address => {
  // A zone picks a link of this machine.
  if (address.includes('%')) return 'link-local'
  switch (isIP(address)) {
    case 4:
      return special4.find(isIn(address, 'ipv4'))?.[2]
    case 6:
      return judge6(address)
    default:
      return 'no address'
  }
}

function judge6(address: string): string | undefined {
  const within = isIn(address, 'ipv6')
  if (embedding.some(within)) return refuseLocal(lastFour(address))
  const local = local6.find(within)
  if (local !== undefined) return local[2]
  if (!within(['2000::', 3, 'global'])) return 'reserved'
  return special6.find(within)?.[2]
}

function isIn(address: string, family: 'ipv4' | 'ipv6'): (block: Block) => boolean {
  return ([network, prefix]) => {
    const list = new BlockList()
    list.addSubnet(network, prefix, family)
    return list.check(address, family)
  }
}

/** The last 32 bits, dotted. */
function lastFour(address: string): string {
  // A URL writes every address in one way: hexadecimal, in groups of 16 bits.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':')
  const [high = 0, low = 0] = groups.slice(-2).map(group => Number.parseInt(group === '' ? '0' : group, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
