import { messageOf } from '../../kernel/index.ts'
import type { CheckedConfig } from './config.ts'
import type { RewindNotice } from './service.ts'
import type { Workspace } from './workspace.ts'

/** The workspaces of this program, opened when first asked for. One that fails is off from then on, with one notice. */
export class Workspaces {
  readonly #config: CheckedConfig
  readonly #notice: (notice: RewindNotice) => void
  readonly #open = new Map<string, Promise<Workspace | undefined>>()
  readonly #opened = new Map<string, Workspace>()
  readonly #closing = new AbortController()
  readonly #reasons = new Map<string, unknown>()

  constructor(config: CheckedConfig, notice: (notice: RewindNotice) => void) {
    this.#config = config
    this.#notice = notice
  }

  /** Undefined where restore points are off. Never rejects. */
  get(folder: string): Promise<Workspace | undefined> {
    const known = this.#open.get(folder)
    if (known !== undefined) return known
    const opened = this.open(folder).catch((error: unknown) => this.#off(folder, error))
    this.#open.set(folder, opened)
    void opened.then(workspace => {
      if (workspace !== undefined) this.#opened.set(folder, workspace)
    })
    return opened
  }

  /** One that is open by now. */
  opened(folder: string): Workspace | undefined {
    return this.#opened.get(folder)
  }

  /** Why points are off in `folder`, where they are. */
  reasonOf(folder: string): unknown {
    return this.#reasons.get(folder)
  }

  /** One that nobody else uses. Rejects with the reason where there can be none. */
  async open(folder: string): Promise<Workspace> {
    const { Workspace } = await import('./workspace.ts')
    return await Workspace.open(folder, this.#config, this.#closing.signal)
  }

  /** Aborts when nothing new is worth taking any more. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  close(): void {
    this.#closing.abort()
  }

  /** Restore points of the folder are given up, for this reason. */
  switchOff(folder: string, error: unknown): void {
    this.#opened.delete(folder)
    this.#open.set(folder, Promise.resolve(this.#off(folder, error)))
  }

  #off(workspace: string, error: unknown): undefined {
    this.#reasons.set(workspace, error)
    if (this.closing.aborted) return
    const message = `restore points are off in "${workspace}": ${messageOf(error)}`
    this.#notice({ code: 'REWIND_OFF', message, workspace })
  }
}
