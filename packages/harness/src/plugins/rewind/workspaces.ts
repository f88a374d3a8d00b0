import { messageOf } from '../../kernel/index.ts'
import type { CheckedConfig } from './config.ts'
import type { RewindNotice } from './service.ts'
import type { Workspace } from './workspace.ts'

/** The workspaces of this program, opened when first asked for. One that fails is off from then on, with one notice. */
export class Workspaces {
  readonly #config: CheckedConfig
  readonly #notice: (notice: RewindNotice) => void
  readonly #open = new Map<string, Promise<Workspace | undefined>>()

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
    return opened
  }

  /** One that nobody else uses. Rejects with the reason where there can be none. */
  async open(folder: string): Promise<Workspace> {
    const { Workspace } = await import('./workspace.ts')
    return await Workspace.open(folder, this.#config)
  }

  /** Restore points of the folder are given up, for this reason. */
  switchOff(folder: string, error: unknown): void {
    this.#open.set(folder, Promise.resolve(this.#off(folder, error)))
  }

  #off(workspace: string, error: unknown): undefined {
    const message = `restore points are off in "${workspace}": ${messageOf(error)}`
    this.#notice({ code: 'REWIND_OFF', message, workspace })
  }
}
