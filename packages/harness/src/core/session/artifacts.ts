import { createHash } from 'node:crypto'

export interface ArtifactRef {
  /** Hex, of the content. */
  readonly sha256: string
  /** Length of the content. */
  readonly bytes: number
}

/** Keeps contents under their hash. */
export interface ArtifactStore {
  /** `type` is a media type. Resolves when the content is safe there. */
  put(bytes: Uint8Array, type: string): Promise<ArtifactRef>
  get(sha256: string): Promise<Uint8Array | undefined>
}

export interface ArtifactBacking {
  /** Resolves when what was put before is safe there too. */
  readonly moved: Promise<void>
  /** Puts nothing more there. */
  detach(): void
}

interface Kept {
  readonly bytes: Uint8Array
  readonly type: string
}

/** Contents that belong to one session, in memory until a store plugin puts its own place behind them. */
export class SessionArtifacts implements ArtifactStore {
  readonly #kept = new Map<string, Kept>()
  readonly #inherited: ArtifactStore | undefined
  #store: ArtifactStore | undefined

  /** `inherited` is asked for what is not here: the artifacts of the session this one was forked from. */
  constructor(inherited?: ArtifactStore) {
    this.#inherited = inherited
  }

  async put(bytes: Uint8Array, type: string): Promise<ArtifactRef> {
    if (this.#store !== undefined) return this.#store.put(bytes, type)
    const copy = Uint8Array.from(bytes)
    const sha256 = createHash('sha256').update(copy).digest('hex')
    this.#kept.set(sha256, { bytes: copy, type })
    return { sha256, bytes: copy.length }
  }

  /** The bytes are the caller's own. */
  async get(sha256: string): Promise<Uint8Array | undefined> {
    const kept = this.#kept.get(sha256)
    if (kept !== undefined) return Uint8Array.from(kept.bytes)
    return (await this.#store?.get(sha256)) ?? this.#inherited?.get(sha256)
  }

  /** From now on contents go to `store`, those that are here included. Throws a TypeError while another store is behind. */
  attach(store: ArtifactStore): ArtifactBacking {
    if (this.#store !== undefined) throw new TypeError('the artifacts have a store already')
    this.#store = store
    return {
      moved: this.#move(store),
      detach: () => {
        if (this.#store === store) this.#store = undefined
      },
    }
  }

  async #move(store: ArtifactStore): Promise<void> {
    for (const [sha256, { bytes, type }] of this.#kept) {
      await store.put(bytes, type)
      this.#kept.delete(sha256)
    }
  }
}
