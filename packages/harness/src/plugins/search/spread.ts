/** Paths of one top-level folder, the newest first; those of the root itself make one group. */
interface Group {
  count: number
  readonly newest: string[]
}

/** A choice from many paths that come newest first: each top-level folder is seen before one is seen twice. */
export class PathSpread {
  readonly #limit: number
  readonly #groups = new Map<string, Group>()
  readonly #newest: string[] = []
  #total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get total(): number {
    return this.#total
  }

  /** How many top-level folders there are. */
  get groups(): number {
    return this.#groups.size
  }

  /** `below` is the path below the root, which tells its folder; `path` is what is chosen. */
  add(below: string, path: string): void {
    this.#total++
    if (this.#newest.length < this.#limit) this.#newest.push(path)
    const name = below.substring(0, Math.max(0, below.indexOf('/')))
    let group = this.#groups.get(name)
    if (group === undefined) this.#groups.set(name, (group = { count: 0, newest: [] }))
    group.count++
    if (group.newest.length < this.#limit) group.newest.push(path)
  }

  /**
   * All paths in the order they came, where they are no more than the limit. Else as many, those of one folder together,
   * in the order in which the folders came.
   */
  choose(): readonly string[] {
    if (this.#total <= this.#limit) return this.#newest
    const groups = [...this.#groups.values()].slice(0, this.#limit)
    const shares = groups.map(() => 0)
    let left = this.#limit
    for (let round = 0; left > 0 && round < this.#limit; round++) {
      for (const [index, group] of groups.entries()) {
        if (left === 0) break
        if (group.newest.length <= round) continue
        shares[index] = round + 1
        left--
      }
    }
    return groups.flatMap((group, index) => group.newest.slice(0, shares[index]))
  }
}
