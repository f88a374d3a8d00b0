import { existsSync, readdirSync } from 'node:fs'
import { readTextNow } from '../../src/plugins/sandbox/env.ts'
import type { Ended, openPlace } from './sandbox-place.ts'

export type Place = Awaited<ReturnType<typeof openPlace>>

/** What of a command's deeds is seen from outside. */
export async function breaches(
  place: Place,
  { output, stderr }: Ended,
  before: Record<string, string>,
): Promise<string[]> {
  const after = place.snapshot()
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    path => before[path] !== after[path],
  )
  return [
    ...changed.map(path => `changed ${path}`),
    ...place.reached.splice(0).map(where => `reached ${where}`),
    ...(/ESCAPED|SECRET/.test(output + stderr) ? [`said ${output}`] : []),
    ...(place.isVictimAlive() ? [] : ['ended a process']),
    ...(existsSync(`/tmp/${place.mark}`) ? ['left a file in /tmp'] : []),
    ...(await survivors('98765')).map(pid => (process.kill(pid, 'SIGKILL'), 'left a process')),
  ]
}

/** Processes that are there a while later: the kernel ends those of a namespace one after the other. */
async function survivors(argument: string): Promise<number[]> {
  const deadline = performance.now() + 2000
  while (sleepers(argument).length > 0 && performance.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, 10))
  return sleepers(argument)
}

function sleepers(argument: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => readTextNow(`/proc/${pid}/cmdline`) === `sleep\0${argument}\0`)
    .map(Number)
}
