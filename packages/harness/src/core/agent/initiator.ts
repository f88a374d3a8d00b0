import { AsyncLocalStorage } from 'node:async_hooks'
import { types } from 'node:util'
import type { Agent } from './agent.ts'
import { AgentError } from './errors.ts'

/** One run of an operation in somebody's name. */
interface Boundary {
  readonly agent: Agent | undefined
  outer: Boundary | undefined
  /** Until the operation has returned, or its promise settled. */
  open: boolean
}

/**
 * On whose behalf the running code runs: a fact for attribution, not a sign of life and not a permission.
 *
 * Once `isEnding` answers true no new work may be started; `drain` waits for what was started before.
 */
export class Initiators {
  readonly #storage = new AsyncLocalStorage<Boundary>()
  readonly #pending = new Map<Boundary, Promise<void>>()
  readonly #isEnding: () => boolean
  #ended = false

  constructor(isEnding: () => boolean) {
    this.#isEnding = isEnding
  }

  get current(): Agent | undefined {
    if (this.#ended) throw new AgentError('REGISTRY_ENDED', 'the registry that knew the initiator has ended')
    return this.#storage.getStore()?.agent
  }

  /** Gives exactly what `operation` gives, also the same promise. */
  run<T>(agent: Agent | undefined, operation: () => T): T {
    if (this.#ended || this.#isEnding()) {
      throw new AgentError('REGISTRY_ENDED', 'no work can be started: the agent registry is ending')
    }
    const boundary: Boundary = { agent, outer: stillOpen(this.#storage.getStore()), open: true }
    let result: unknown
    try {
      return (result = this.#storage.run(boundary, operation)) as T
    } finally {
      if (types.isPromise(result)) this.#follow(boundary, result)
      else boundary.open = false
    }
  }

  /** Whether the running code is, at any depth, part of unfinished work of `agent`. */
  isInside(agent: Agent): boolean {
    return this.#lineage().some(boundary => boundary.agent === agent && boundary.open)
  }

  /** Resolves when all work has ended but that which, itself, waits for this. From then on nobody is known. */
  async drain(): Promise<void> {
    const own = new Set(this.#lineage())
    const others = [...this.#pending].filter(([boundary]) => !own.has(boundary))
    await Promise.all(others.map(([, end]) => end))
    this.#ended = true
  }

  #follow(boundary: Boundary, result: Promise<unknown>): void {
    const settled = (): void => {
      this.#pending.delete(boundary)
      boundary.open = false
      // Work that starts work would otherwise keep every agent that ever took part.
      boundary.outer = stillOpen(boundary.outer)
    }
    this.#pending.set(boundary, result.then(settled, settled))
  }

  #lineage(): Boundary[] {
    const found: Boundary[] = []
    for (let at = this.#storage.getStore(); at !== undefined; at = at.outer) found.push(at)
    return found
  }
}

function stillOpen(boundary: Boundary | undefined): Boundary | undefined {
  let at = boundary
  while (at !== undefined && !at.open) at = at.outer
  return at
}
