import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { FileContent, TreeEdit } from './import.ts'
import { shownPath } from './paths.ts'
import type { RawPath } from './paths.ts'
import type { TreeFacts, TreeLists } from './repository.ts'
import type { Base, Known } from './stat-index.ts'
import { isFresh, isSameLook, sliceMs } from './walk.ts'
import type { Look, Walked } from './walk.ts'

/** A path that the state leaves out, or leaves as it was. */
export type Unread = undefined | 'changed-since'

/** The next state while it is made of the last one and a walk. */
export class Draft {
  readonly known = new Map<RawPath, Known>()
  readonly #walked: Walked
  readonly #base: Base | undefined
  readonly #read: (path: RawPath) => FileContent | Unread
  #haveModesChanged = false

  constructor(walked: Walked, base: Base | undefined, read: (path: RawPath) => FileContent | Unread) {
    this.#walked = walked
    this.#base = base
    this.#read = read
  }

  /** What the files need; a file that only looks different gives nothing. Fills `known` on the way. */
  async *edits(): AsyncGenerator<TreeEdit, void> {
    for (const path of this.#base?.known.keys() ?? []) if (!this.#walked.files.has(path)) yield { path }
    let since = performance.now()
    for (const [path, look] of this.#walked.files) {
      const edit = this.#editOf(path, look)
      if (edit !== undefined) yield edit
      if (performance.now() - since < sliceMs) continue
      await setImmediate()
      since = performance.now()
    }
  }

  #editOf(path: RawPath, look: Look): TreeEdit | undefined {
    const last = this.#base?.known.get(path)
    if (last !== undefined && !last.fresh && isSameLook(last.look, look)) {
      this.known.set(path, last)
      return undefined
    }
    const content = this.#read(path)
    if (content === 'changed-since') {
      if (last !== undefined) this.known.set(path, last)
      return undefined
    }
    if (content === undefined) return last === undefined ? undefined : { path }
    const { kind, oid, look: read } = content
    this.known.set(path, { look: read, kind, oid, fresh: isFresh(read) })
    this.#haveModesChanged ||= last === undefined || bitsOf(last.look) !== bitsOf(read)
    return last?.oid === oid && last.kind === kind ? undefined : { path, content }
  }

  /** Only when all edits are through, and there were none. */
  hasFactsOf({ facts }: Base): boolean {
    return !this.#haveModesChanged && isDeepStrictEqual(listsOf(this.#walked), pickLists(facts))
  }

  /** Only when all edits are through. */
  facts(): TreeFacts {
    return { ...listsOf(this.#walked), ...modesOf(this.known) }
  }
}

function listsOf({ empty, tooLarge, unreadable, special, exclude }: Walked): TreeLists {
  return {
    empty: shownPaths(empty),
    tooLarge: shownPaths(tooLarge),
    unreadable: shownPaths(unreadable),
    special: shownPaths(special),
    exclude,
  }
}

function pickLists({ empty, tooLarge, unreadable, special, exclude }: TreeFacts): TreeLists {
  return { empty, tooLarge, unreadable, special, exclude }
}

function modesOf(known: ReadonlyMap<RawPath, Known>): Pick<TreeFacts, 'modes' | 'odd'> {
  const files = [...known].filter(([, { kind }]) => kind !== '120000')
  const usual = (kind: Known['kind']): number =>
    mostFrequent(files.flatMap(([, file]) => (file.kind === kind ? [bitsOf(file.look)] : [])))
  const plain = usual('100644') || 0o644
  const executable = usual('100755') || 0o755
  const odd = files.filter(([, file]) => bitsOf(file.look) !== (file.kind === '100755' ? executable : plain))
  return {
    modes: [plain, executable],
    odd: Object.fromEntries(odd.map(([path, { look }]) => [shownPath(path), bitsOf(look)])),
  }
}

function bitsOf({ mode }: Look): number {
  return mode & 0o7777
}

function shownPaths(paths: readonly RawPath[]): string[] {
  return [...new Set(paths)].toSorted().map(shownPath)
}

function mostFrequent(values: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  let best = 0
  for (const [value, count] of counts) if (count > (counts.get(best) ?? 0)) best = value
  return best
}
