import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { HarnessError } from '../../kernel/index.ts'
import type { Trust, TrustEntry, TrustList, TrustPart, TrustState } from './service.ts'
import { TrustFile } from './trust-file.ts'

/** `ctx.trust` over a file; needs no context, so that what loads plugins can ask it before there is any. */
export class LocalTrust implements Trust {
  readonly #file: TrustFile

  constructor(home: string) {
    this.#file = new TrustFile(join(home, 'trust.json'))
  }

  async stateOf(folder: string): Promise<TrustState> {
    const { entries } = await this.#file.read()
    const path = await realpath(folder).catch(() => undefined)
    return path === undefined ? 'undecided' : stateIn(entries, path)
  }

  async pending(folder: string, parts: readonly TrustPart[]): Promise<readonly TrustPart[]> {
    const { entries } = await this.#file.read()
    const path = await realpath(folder).catch(() => undefined)
    if (path === undefined || stateIn(entries, path) !== 'trusted') return parts
    const admitted = entries.find(entry => entry.path === path)?.parts ?? []
    return parts.filter(part => !admitted.some(other => isSame(other, part)))
  }

  async grant(folder: string, parts: readonly TrustPart[] = []): Promise<void> {
    const path = await canonical(folder)
    await this.#file.change(entries => withEntry(entries, { path, state: 'trusted', parts }))
  }

  async admit(folder: string, parts: readonly TrustPart[]): Promise<void> {
    const path = await canonical(folder)
    await this.#file.change(entries => {
      if (stateIn(entries, path) !== 'trusted')
        throw new HarnessError('NOT_TRUSTED', `the folder "${path}" is not trusted`)
      const before = entries.find(entry => entry.path === path)?.parts ?? []
      const kept = before.filter(part => !parts.some(other => other.path === part.path))
      return withEntry(entries, { path, state: 'trusted', parts: [...kept, ...parts] })
    })
  }

  async revoke(folder: string): Promise<void> {
    // What is not there any more can be revoked all the same, but not under a name that depends on where one stands.
    const path = isAbsolute(folder) ? await realpath(folder).catch(() => folder) : await canonical(folder)
    await this.#file.change(entries => withEntry(entries, { path, state: 'untrusted', parts: [] }))
  }

  list(): Promise<TrustList> {
    return this.#file.read()
  }
}

async function canonical(folder: string): Promise<string> {
  return await realpath(folder).catch((cause: unknown) => {
    throw new HarnessError('TRUST_FOLDER_GONE', `the folder "${folder}" is not there`, { cause })
  })
}

function withEntry(entries: readonly TrustEntry[], entry: TrustEntry): readonly TrustEntry[] {
  const others = entries.filter(({ path }) => path !== entry.path)
  return [...others, entry].toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

/** Of the nearest folder that something was said of, as long as no repository begins in between. */
function stateIn(entries: readonly TrustEntry[], path: string): TrustState {
  for (let at = path; ; at = dirname(at)) {
    const entry = entries.find(each => each.path === at)
    if (entry !== undefined) return entry.state
    if (dirname(at) === at || existsSync(join(at, '.git'))) return 'undecided'
  }
}

function isSame(a: TrustPart, b: TrustPart): boolean {
  return a.path === b.path && a.sha256 === b.sha256
}
