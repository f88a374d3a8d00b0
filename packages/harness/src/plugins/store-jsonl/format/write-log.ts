import type { SessionEvent } from '@dsh/protocol'
import { encodeEvents } from './encode.ts'
import { writeAll } from '../files/file-system.ts'
import type { OpenFile } from '../files/file-system.ts'
import { chainHash } from './records.ts'
import type { KeepText } from './spill.ts'
import type { FileWindow } from '../files/window.ts'

/** Writes a log frame by frame; each names the one before it. */
export class LogDraft {
  readonly #file: OpenFile
  #hash = ''

  constructor(file: OpenFile) {
    this.#file = file
  }

  /** `chainHash` of the last frame. */
  get hash(): string {
    return this.#hash
  }

  /** Copies a whole frame, which must continue what was written, the first one nothing. */
  async copy(
    window: FileWindow,
    { start, end }: { readonly start: number; readonly end: number },
  ): Promise<void> {
    const bytes = await window.from(start, end - start)
    await this.add(bytes.subarray(0, end - start))
  }

  async add(frame: Buffer): Promise<void> {
    await writeAll(this.#file, frame)
    this.#hash = chainHash(frame)
  }

  async addEvents(events: readonly SessionEvent[], keep: KeepText): Promise<void> {
    if (events.length === 0) return
    const { bytes, lastHash } = await encodeEvents(events, this.#hash, keep)
    await writeAll(this.#file, bytes)
    this.#hash = lastHash
  }
}
