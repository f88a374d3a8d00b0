import type { EpochHeader } from '@dsh/protocol'
import { jsonEquals } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import type { ServedTools } from './served-tools.ts'

/** Says and offers, for one agent, what a recorded header says and nobody here does. */
export class StandIns {
  readonly #ctx: Context
  readonly #served: ServedTools
  readonly #header: () => EpochHeader | undefined
  readonly #tools = new Map<string, { readonly schema: object; readonly remove: Disposer }>()

  /** `ctx` is the agent's own; `header` gives that of the next request. */
  constructor(ctx: Context, served: ServedTools, header: () => EpochHeader | undefined) {
    this.#ctx = ctx
    this.#served = served
    this.#header = header
    ctx.systemPrompt.section({
      name: 'recording:system',
      order: 0,
      complete: true,
      verbatim: true,
      text: () => this.#header()?.system ?? '',
    })
  }

  /** Before each step: tools come and go. */
  update(): void {
    const { tools } = this.#ctx
    const wanted = new Map((this.#header()?.tools ?? []).map(tool => [tool.name, tool]))
    for (const [name, { schema, remove }] of this.#tools) {
      if (jsonEquals(schema, wanted.get(name))) continue
      remove()
      this.#tools.delete(name)
    }
    for (const [name, schema] of wanted) {
      if (this.#tools.has(name) || tools.get(name, null) !== undefined) continue
      this.#tools.set(name, { schema, remove: this.#served.offer(schema) })
    }
  }
}
