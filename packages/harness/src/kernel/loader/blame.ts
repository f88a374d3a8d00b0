const place = /(file:\/\/\/[^\s()]+?)(?:\?v=\d+)?:\d+:\d+/g

/** The files on the stack of an error, innermost first, those of its causes behind them. */
export function filesOnStack(error: unknown): string[] {
  const files: string[] = []
  const seen = new Set<unknown>()
  for (let at = error; typeof at === 'object' && at !== null && !seen.has(at); at = causeOf(at)) {
    seen.add(at)
    const { stack } = at as { stack?: unknown }
    if (typeof stack === 'string') for (const [, file = ''] of stack.matchAll(place)) files.push(file)
  }
  return files
}

function causeOf(error: object): unknown {
  return (error as { cause?: unknown }).cause
}
