import type { GenerateOptions } from './adapter.ts'

const loopRequests = new WeakSet<GenerateOptions>()

/** Marks a frozen request whose every part can be rebuilt from the log. Only a loop does this. */
export function markLoopRequest<Options extends GenerateOptions>(options: Options): Options {
  loopRequests.add(options)
  return options
}

/** A loop's request may be observed or answered by an `llm/stream` listener, never changed. */
export function isLoopRequest(options: GenerateOptions): boolean {
  return loopRequests.has(options)
}
