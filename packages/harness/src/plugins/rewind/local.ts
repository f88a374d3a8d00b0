import { realpath } from 'node:fs/promises'
import type { CallId, SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { CheckedConfig } from './config.ts'
import { RewindError } from './errors.ts'
import type { Keeper } from './keeper.ts'
import { rawPath, shownPath } from './paths.ts'
import { pointAt, rowsOf } from './points.ts'
import type { Repository } from './repository.ts'
import type { Rewinder } from './rewinder.ts'
import type {
  ForkAtOptions,
  KeptState,
  PointFile,
  RestorePoint,
  Rewind,
  RewindOptions,
  RewindPreview,
  RewindResult,
  RewindRow,
  RewindTarget,
} from './service.ts'
import type { Workspaces } from './workspaces.ts'

/** `ctx.rewind` over private git repositories below the home folder. */
export class LocalRewind implements Rewind {
  readonly #config: CheckedConfig

  readonly #ctx: Context
  readonly #workspaces: Workspaces
  readonly #keeper: Keeper

  constructor(ctx: Context, config: CheckedConfig, workspaces: Workspaces, keeper: Keeper) {
    this.#ctx = ctx
    this.#config = config
    this.#workspaces = workspaces
    this.#keeper = keeper
  }

  list(session: Session): readonly RewindRow[] {
    return rowsOf(session)
  }

  pointAt(session: Session, seq: number): RestorePoint | undefined {
    return pointAt(session, seq)
  }

  async filesAt(point: RestorePoint): Promise<readonly PointFile[]> {
    const repository = await this.#repositoryOf(point)
    const { files } = await repository.state(point.commit)
    return [...files].map(([path, { kind, mode, size, oid }]) => ({
      path: shownPath(path),
      kind: kind === '120000' ? 'link' : 'file',
      mode,
      size,
      oid,
    }))
  }

  async keep(session: Session, callId: CallId): Promise<KeptState> {
    return await this.#keeper.keep(session, callId)
  }

  async read(point: RestorePoint, path: string): Promise<Uint8Array | undefined> {
    const repository = await this.#repositoryOf(point)
    const { files } = await repository.state(point.commit)
    const file = files.get(rawPath(path))
    if (file === undefined) return undefined
    const [bytes] = await repository.blobs([file.oid])
    return bytes
  }

  async diff(from: RestorePoint, to: RestorePoint): Promise<string> {
    const repository = await this.#repositoryOf(to)
    return repository.patch(from.commit, to.commit)
  }

  async recover(session: Session): Promise<boolean> {
    const { cwd } = session.header
    if (cwd === undefined || !(await this.#hasJournal(cwd))) return false
    await (await this.#rewinder()).recover(session)
    return true
  }

  async preview(session: Session, to: RewindTarget, options: RewindOptions = {}): Promise<RewindPreview> {
    return await (await this.#rewinder()).preview(session, to, options)
  }

  async apply(session: Session, to: RewindTarget, options: RewindOptions = {}): Promise<RewindResult> {
    return await (await this.#rewinder()).apply(session, to, options)
  }

  async fork(session: Session, options: ForkAtOptions = {}): Promise<SessionId> {
    return await (await this.#rewinder()).fork(session, options)
  }

  async #rewinder(): Promise<Rewinder> {
    const { Rewinder } = await import('./rewinder.ts')
    return new Rewinder(this.#ctx, this.#workspaces)
  }

  async #hasJournal(folder: string): Promise<boolean> {
    const { repositoryFolder } = await import('./repository.ts')
    const { readJournal } = await import('./journal.ts')
    const real = await realpath(folder).catch(() => folder)
    return (await readJournal(repositoryFolder(this.#config.home, real))) !== undefined
  }

  async #repositoryOf({ workspace }: RestorePoint): Promise<Repository> {
    const { Repository, repositoryFolder } = await import('./repository.ts')
    const { surroundings } = await import('./env.ts')
    const real = await realpath(workspace).catch(() => workspace)
    const folder = repositoryFolder(this.#config.home, real)
    const found = await Repository.find(folder, surroundings(this.#config))
    if (found !== undefined) return found
    throw new RewindError('REWIND_OFF', `no restore points are kept of "${workspace}"`)
  }
}
