import { arch, platform } from 'node:os'
import { sep } from 'node:path'
import { ok } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** An older Node never gets here: `bin.js` starts the one that came along, or says what is needed. */
export async function lookAtRuntime({ runtime }: Place): Promise<Findings> {
  return [ok(runtimeText(runtime))]
}

/** `path` tells how it was started: by name, or as the newer one that an older Node found beside dsh. */
export function runtimeText({ node, path }: Place['runtime']): string {
  const isOfPackage = path.includes(`${sep}node_modules${sep}node${sep}`)
  const origin = isOfPackage ? ', of the npm package node' : ''
  return `Node ${node} · ${platform()} ${arch()} · ${path}${origin}`
}
