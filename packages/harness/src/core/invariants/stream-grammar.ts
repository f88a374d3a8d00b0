import type { StreamChunk } from '@dsh/protocol'

/** How far the chunks of one request have come. */
export interface StreamState {
  /** Type of each block, by index, that has started and not ended. */
  readonly open: ReadonlyMap<number, string>
  readonly ended: ReadonlySet<number>
  readonly hasUsage: boolean
  readonly hasFinish: boolean
}

export const streamStart: StreamState = {
  open: new Map(),
  ended: new Set(),
  hasUsage: false,
  hasFinish: false,
}

/** The state behind `chunk`, wrong or not; `state` itself where a delta changes nothing. */
export function afterChunk(state: StreamState, chunk: StreamChunk): StreamState {
  switch (chunk.type) {
    case 'block-start':
      return { ...state, open: new Map(state.open).set(chunk.index, chunk.blockType) }
    case 'block-end': {
      const open = new Map(state.open)
      open.delete(chunk.index)
      return { ...state, open, ended: new Set(state.ended).add(chunk.index) }
    }
    case 'usage':
      return { ...state, hasUsage: true }
    case 'finish':
      return { ...state, hasFinish: true }
    default:
      return state
  }
}

/** What is wrong with `chunk` at this point of its stream. Undefined = nothing. */
export function chunkProblem(state: StreamState, chunk: StreamChunk): string | undefined {
  if (state.hasFinish) return `${chunk.type} behind the finish`
  switch (chunk.type) {
    case 'usage':
      return state.hasUsage ? 'a second usage' : undefined
    case 'finish':
      return finishProblem(state, chunk.reason.kind)
    case 'block-start':
      return indexProblem(chunk) ?? startProblem(state, chunk.index)
    case 'block-end':
      return indexProblem(chunk) ?? blockProblem(state, chunk, chunk.block.type)
    default:
      return indexProblem(chunk) ?? blockProblem(state, chunk, chunk.type.slice(0, -'-delta'.length))
  }
}

/** What is missing at the end of the stream. Undefined = nothing. */
export function endProblem(state: StreamState): string | undefined {
  return state.hasFinish ? undefined : 'the stream ended without a finish'
}

/** Everything that is wrong with a whole stream, in order, each with the position of its chunk. */
export function checkStream(chunks: Iterable<StreamChunk>): readonly string[] {
  const problems: string[] = []
  let state = streamStart
  let position = 0
  for (const chunk of chunks) {
    const problem = chunkProblem(state, chunk)
    if (problem !== undefined) problems.push(`chunk ${position}: ${problem}`)
    state = afterChunk(state, chunk)
    position++
  }
  const missing = endProblem(state)
  return missing === undefined ? problems : [...problems, missing]
}

type Indexed = Extract<StreamChunk, { readonly index: number }>

function indexProblem({ type, index }: Indexed): string | undefined {
  return Number.isSafeInteger(index) && index >= 0 ? undefined : `${type} with index ${String(index)}`
}

function startProblem({ open, ended }: StreamState, index: number): string | undefined {
  if (open.has(index)) return `block ${index} starts while it is open`
  return ended.has(index) ? `block ${index} starts again` : undefined
}

function blockProblem(
  { open }: StreamState,
  { type, index }: Indexed,
  blockType: string,
): string | undefined {
  const started = open.get(index)
  if (started === undefined) return `${type} for block ${index}, which is not open`
  return started === blockType
    ? undefined
    : `${type} of "${blockType}" for block ${index}, which is "${started}"`
}

/** A request that failed may leave its blocks open. */
function finishProblem({ open }: StreamState, kind: string): string | undefined {
  if (open.size === 0 || kind === 'error' || kind === 'aborted') return undefined
  return `finish "${kind}" while block ${[...open.keys()].join(', ')} is open`
}
