import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { Session } from '../../core/session/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import { canonical } from './canonical.ts'
import type { SandboxConfig } from './config.ts'
import type { Machine } from './env.ts'
import type { SandboxMode } from './events.ts'
import { protectedIn } from './protect.ts'
import { readRefusal, writeRefusal } from './refusal.ts'
import { readableOfHome, secretPaths } from './secrets.ts'
import type { PolicyRequest, SandboxBounds, SandboxExecutionPolicy, SandboxPolicy } from './service.ts'

/** Modes by the log of each session, and what follows from them for one call. */
export class LoggedPolicy implements SandboxPolicy {
  readonly #config: SandboxConfig
  readonly #machine: Machine
  readonly #grants = new WeakMap<symbol, WiderAccess>()
  readonly #temps = new WeakMap<object, string>()
  readonly #bounds = new Set<SandboxBounds>()
  readonly #secrets: readonly string[]

  constructor(config: SandboxConfig, machine: Machine) {
    this.#config = config
    this.#machine = machine
    this.#secrets = secretPaths(machine, config.env)
  }

  get defaultMode(): SandboxMode {
    return this.#config.mode
  }

  modeOf(session: Session | undefined): SandboxMode {
    return session?.last('sandbox/mode')?.data.mode ?? this.#config.mode
  }

  setMode(session: Session, mode: SandboxMode): void {
    if (session.last('sandbox/mode')?.data.mode !== mode) session.append('sandbox/mode', { mode })
  }

  extend(bounds: SandboxBounds): () => void {
    const own = { ...bounds }
    this.#bounds.add(own)
    return () => void this.#bounds.delete(own)
  }

  async resolve({ session, token }: PolicyRequest): Promise<SandboxExecutionPolicy> {
    const granted = token === undefined ? undefined : this.#grants.get(token)
    const mode = widest(this.modeOf(session), granted)
    const folder = session?.header.cwd ?? this.#config.cwd
    const workspaceRoot = canonical(folder ?? this.#machine.startFolder)
    const network = mode === 'full-access' || granted === 'network' || this.#allowsNetwork()
    const base = { mode, network, workspaceRoot, ...(session && { sessionId: session.id }) }
    const nothing = { writableRoots: [], protectedPaths: [], unreadablePaths: [], readablePaths: [] }
    if (mode === 'full-access') return { ...base, ...nothing, writableRoots: [workspaceRoot] }
    const hidden = { unreadablePaths: this.#unreadable(), readablePaths: this.#readable() }
    if (mode === 'read-only') return { ...base, ...nothing, ...hidden }
    const isOwn = folder !== undefined && !isShared(workspaceRoot)
    const others = this.#there('writable').filter(root => !isShared(root))
    const tempFolder = this.tempOf(session ?? this)
    return {
      ...base,
      ...hidden,
      writableRoots: [...new Set([...(isOwn ? [workspaceRoot] : []), ...others, tempFolder])],
      protectedPaths: [
        ...(isOwn ? this.#protectedBy(workspaceRoot) : []),
        ...others.flatMap(protectedIn).filter(path => existsSync(path)),
      ],
      tempFolder,
    }
  }

  grant(token: symbol, access: WiderAccess): void {
    this.#grants.set(token, access)
  }

  grantOf(token: symbol): WiderAccess | undefined {
    return this.#grants.get(token)
  }

  writeRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined {
    return writeRefusal(policy, path)
  }

  readRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined {
    return readRefusal(policy, path)
  }

  /** The temporary folder of a session, or of what belongs to none; nothing is made. */
  tempOf(owner: object): string {
    const { home } = this.#config
    const { pid } = this.#machine
    const folder = home === undefined ? join(tmpdir(), `dsh-${pid}-`) : join(home, 'tmp', `${pid}-`)
    const known = this.#temps.get(owner) ?? canonical(`${folder}${randomBytes(6).toString('hex')}`)
    this.#temps.set(owner, known)
    return known
  }

  #allowsNetwork(): boolean {
    return [...this.#bounds].some(({ network }) => network === true)
  }

  #unreadable(): string[] {
    const { home } = this.#config
    const paths = [...this.#secrets, ...(home === undefined ? [] : [home])].filter(path => existsSync(path))
    return [...new Set([...paths.map(canonical), ...this.#there('unreadable')])]
  }

  #readable(): string[] {
    const { home } = this.#config
    if (home === undefined) return []
    return readableOfHome
      .map(name => join(home, name))
      .filter(path => existsSync(path))
      .map(canonical)
  }

  /** What people named, as far as it is there. */
  #there(key: 'writable' | 'unreadable'): string[] {
    return this.#named(key)
      .filter(path => isAbsolute(path) && existsSync(path))
      .map(canonical)
  }

  #protectedBy(root: string): string[] {
    const paths = [...protectedIn(root), ...this.#named('protect').map(path => resolve(root, path))]
    // Names that nobody has taken are taken in a folder of one's own alone.
    return root === '/' ? paths.filter(path => existsSync(path)) : paths
  }

  #named(key: 'writable' | 'unreadable' | 'protect'): string[] {
    const { userHome } = this.#machine
    return [...this.#bounds]
      .flatMap(bounds => bounds[key] ?? [])
      .map(path => path.replace(/^~(?=\/|$)/, userHome))
  }
}

function widest(mode: SandboxMode, granted: WiderAccess | undefined): SandboxMode {
  if (granted === undefined || mode === 'full-access') return mode
  return granted === 'full-access' ? granted : 'workspace-write'
}

/** Whether everybody of the machine may make files there, as in /tmp: no folder to hand to anybody as a whole. */
function isShared(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & 0o1002) === 0o1002
}
