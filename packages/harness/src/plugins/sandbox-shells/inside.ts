import { readFileSync } from 'node:fs'

/** The processes of a sandbox as they are seen from outside: its first one and the runner. */
export interface Insiders {
  /** Gets the children of all that ends. */
  readonly first: number
  readonly runner: number
}

/** Undefined where the system does not tell, or the sandbox has not got that far. */
export function findInsiders(outer: number): Insiders | undefined {
  const [first] = childrenOf(outer)
  const [runner] = first === undefined ? [] : childrenOf(first)
  return first === undefined || runner === undefined ? undefined : { first, runner }
}

/** What is mounted for a process; undefined when it is gone. */
export function mountsOf(pid: number): string | undefined {
  return readNow(`/proc/${pid}/mountinfo`)
}

export function childrenOf(pid: number): number[] {
  const text = readNow(`/proc/${pid}/task/${pid}/children`) ?? ''
  return text.split(' ').filter(Boolean).map(Number)
}

/** The number that the leader of a group has outside, by the one within the sandbox, while anything of the group is there. */
export function leaderOutside({ first }: Insiders, inside: number): number | undefined {
  for (let pids = childrenOf(first); pids.length > 0; pids = pids.flatMap(childrenOf)) {
    for (const pid of pids) {
      const [outer, inner] = numbersOf(pid, 'NSpgid')
      if (inner === inside) return outer
    }
  }
  return undefined
}

/** The number of a process within the sandbox; its own where it cannot be told. */
export function numberInside(pid: number): number {
  return numbersOf(pid, 'NSpid')[1] ?? pid
}

/** From the outermost world of processes that can be seen to the innermost. */
function numbersOf(pid: number, field: 'NSpid' | 'NSpgid'): number[] {
  const text = readNow(`/proc/${pid}/status`) ?? ''
  const [, numbers = ''] = new RegExp(`^${field}:\\t(.*)$`, 'm').exec(text) ?? []
  return numbers.split('\t').filter(Boolean).map(Number)
}

function readNow(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}
