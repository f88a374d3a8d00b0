import { createSocket } from 'node:dgram'
import { utimesSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server } from 'node:net'

export interface Doors {
  /** Who came in, and where. */
  readonly reached: string[]
  readonly ports: Readonly<Record<'PORT' | 'PORT6' | 'PORT_UDP', string>>
  close(): void
}

/** Servers of a machine that a confined command must not reach: by address, by path, and by abstract names. */
export async function openDoors(
  paths: readonly string[],
  { areOld }: { readonly areOld: boolean },
): Promise<Doors> {
  const reached: string[] = []
  const [four, six, ...others] = await Promise.all([
    listen(reached, 0, '127.0.0.1'),
    listen(reached, 0, '::1'),
    ...paths.map(path => listen(reached, path)),
  ])
  // Long there, as servers are. Every sandbox of the machine mounts over such, and fails where one goes meanwhile.
  if (areOld) for (const path of paths.filter(each => each.startsWith('/'))) utimesSync(path, 0, 0)
  const udp = createSocket('udp4', () => void reached.push('udp'))
  await new Promise<void>(resolve => udp.bind(0, '127.0.0.1', resolve))
  return {
    reached,
    ports: { PORT: portOf(four), PORT6: portOf(six), PORT_UDP: `${udp.address().port}` },
    close() {
      udp.close()
      for (const server of [four, six, ...others]) server?.close()
    },
  }
}

/** Undefined where the machine has no such address. */
async function listen(
  reached: string[],
  where: number | string,
  address?: string,
): Promise<Server | undefined> {
  const server = createServer(socket => {
    reached.push(address ?? `${where}`)
    socket.destroy()
  })
  return await new Promise(resolve => {
    server.once('error', () => resolve(undefined))
    if (typeof where === 'string') server.listen(where, () => resolve(server))
    else server.listen(where, address, () => resolve(server))
  })
}

function portOf(server: Server | undefined): string {
  const address = server?.address()
  return typeof address === 'object' && address !== null ? `${address.port}` : '1'
}
