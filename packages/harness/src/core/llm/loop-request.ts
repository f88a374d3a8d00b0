import type { GenerateOptions } from './adapter.ts'

// One for all copies of this module: the loop and the runtime may come from two.
const key = Symbol.for('dsh.llm.loop-requests')
const shared = globalThis as { [key]?: WeakSet<GenerateOptions> }
const loopRequests = (shared[key] ??= new WeakSet<GenerateOptions>())

/** Marks a frozen request whose every part can be rebuilt from the log. Only a loop does this. */
export function markLoopRequest<Options extends GenerateOptions>(options: Options): Options {
  loopRequests.add(options)
  return options
}

/** A loop's request may be observed or answered by an `llm/stream` listener, never changed. */
export function isLoopRequest(options: GenerateOptions): boolean {
  return loopRequests.has(options)
}
