import type { StreamChunk } from '@dsh/protocol'
import { LlmAdapter, LlmError } from '../../core/llm/index.ts'
import type { GenerateOptions, LlmResolvedModelInfo } from '../../core/llm/index.ts'
import type { ScriptedChunks, ScriptEntry } from './script.ts'

/** Facts of the scripted model, for what a route's capabilities decide. */
export type ScriptedModelInfo = Partial<Omit<LlmResolvedModelInfo, 'provider' | 'id'>>

/** Answers each request with the next entry of a script, and keeps what it was asked. */
export class ScriptedAdapter extends LlmAdapter {
  /** Every request so far, as it reached the adapter. */
  readonly requests: GenerateOptions[] = []
  readonly #script: ScriptEntry[]
  readonly #info: ScriptedModelInfo

  constructor(script: readonly ScriptEntry[] = [], info: ScriptedModelInfo = {}) {
    super()
    this.#script = [...script]
    this.#info = info
  }

  /** How many entries are left. */
  get remaining(): number {
    return this.#script.length
  }

  push(...entries: readonly ScriptEntry[]): void {
    this.#script.push(...entries)
  }

  override listModels(provider: string): readonly LlmResolvedModelInfo[] {
    return [{ name: provider, ...this.#info, provider, id: provider }]
  }

  override resolveModel(provider: string, model: string): Promise<LlmResolvedModelInfo> {
    return Promise.resolve({ name: model, ...this.#info, provider, id: model })
  }

  /** Fails with SCRIPT_EXHAUSTED where no entry is left. */
  override async *stream(options: GenerateOptions): AsyncIterable<StreamChunk> {
    this.requests.push(options)
    const entry = this.#script.shift()
    if (entry === undefined) {
      const message = `the script has no answer to request ${this.requests.length}`
      throw new LlmError({ code: 'SCRIPT_EXHAUSTED', message })
    }
    if (entry === 'hang') {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      yield { type: 'text-delta', index: 0, text: 'partial' }
      await aborted(options.signal)
      return
    }
    const chunks: ScriptedChunks = typeof entry === 'function' ? await entry(options) : entry
    for await (const chunk of chunks) {
      options.signal?.throwIfAborted()
      yield chunk
    }
  }
}

/** Rejects once the signal aborts; without a signal, never. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => reject(new LlmError({ code: 'ABORTED', message: 'the request was aborted' }))
    if (signal?.aborted === true) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
