import { randomUUID } from 'node:crypto'
import { CallId } from '@dsh/protocol'
import type {
  AssistantMessage,
  ContentBlock,
  FinishReason,
  JsonValue,
  MessageSourceMap,
  ReplayState,
  StreamChunk,
  TokenUsage,
} from '@dsh/protocol'
import { HarnessError } from '../../kernel/index.ts'
import { createAssistantMessage } from './message.ts'

/** What is known of one block. `closed` is the whole block; nothing changes it any more. */
interface Draft {
  readonly type: string
  text: string
  id: string
  name: string
  closed: ContentBlock | undefined
}

/**
 * Folds the chunks of one model answer into its blocks.
 *
 * Tolerates what the grammar forbids: a delta without a start opens its block, and what comes after a block's end or
 * after the finish is ignored. Reading never changes anything.
 */
export class BlockAssembler {
  readonly #drafts = new Map<number, Draft>()
  #usage: TokenUsage | undefined
  #finish: Extract<StreamChunk, { readonly type: 'finish' }> | undefined

  push(chunk: StreamChunk): void {
    if (this.#finish !== undefined) return
    switch (chunk.type) {
      case 'block-start':
        this.#open(chunk.index, chunk.blockType)
        return
      case 'text-delta':
        this.#open(chunk.index, 'text', draft => (draft.text += chunk.text))
        return
      case 'reasoning-delta':
        this.#open(chunk.index, 'reasoning', draft => (draft.text += chunk.text))
        return
      case 'tool-call-delta':
        this.#open(chunk.index, 'tool-call', draft => {
          if (draft.id === '') draft.id = chunk.id
          if (draft.name === '') draft.name = chunk.name ?? ''
          draft.text += chunk.argumentsDelta
        })
        return
      case 'block-end':
        this.#close(chunk.index, chunk.block)
        return
      case 'usage':
        this.#usage = chunk.usage
        return
      case 'finish':
        this.#finish = chunk
    }
  }

  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  /** `stop` until the stream says otherwise. */
  get finish(): FinishReason {
    return this.#finish?.reason ?? stop
  }

  /** The answer in order of first sight. A cut off answer has no tool calls: they may be half. Throws OPEN_BLOCK for an unfinished block of a plugin's type. */
  blocks(): readonly ContentBlock[] {
    return this.#emitted().filter(block => this.#keeps(block))
  }

  /** How many tool calls `blocks` leaves out because the answer hit the output limit. */
  get truncatedToolCalls(): number {
    return this.#emitted().filter(block => !this.#keeps(block)).length
  }

  /** The adapter's notes on exactly the blocks of `blocks`; undefined where they do not fit. */
  get replayState(): ReplayState | undefined {
    const state = this.#finish?.replayState
    if (state?.blocks === undefined) return state
    const emitted = this.#emitted()
    if (state.blocks.length !== emitted.length) return undefined
    const kept = state.blocks.filter((_entry: JsonValue, position) => this.#keeps(emitted[position]))
    return kept.length === emitted.length ? state : { ...state, blocks: kept }
  }

  /** What a person saw of an answer that was cut short: text and reasoning that is not blank. */
  interruptedBlocks(): readonly ContentBlock[] {
    return [...this.#drafts.values()]
      .filter(draft => draft.closed !== undefined || isProse(draft.type))
      .map(toBlock)
      .filter(block => (block.type === 'text' || block.type === 'reasoning') && block.text.trim() !== '')
  }

  /** The message of `blocks`, with a new id each time. */
  message(source: Pick<MessageSourceMap['model'], 'provider' | 'model'>): AssistantMessage {
    const { provider, model } = source
    const { replayState } = this
    return createAssistantMessage({
      content: this.blocks(),
      source: { kind: 'model', provider, model, ...(replayState === undefined ? {} : { replayState }) },
    })
  }

  #open(index: number, type: string, grow?: (draft: Draft) => void): void {
    let draft = this.#drafts.get(index)
    if (draft === undefined) {
      draft = { type, text: '', id: '', name: '', closed: undefined }
      this.#drafts.set(index, draft)
    }
    if (draft.closed === undefined && draft.type === type) grow?.(draft)
  }

  #close(index: number, block: ContentBlock): void {
    this.#open(index, block.type)
    const draft = this.#drafts.get(index)
    if (draft === undefined || draft.closed !== undefined) return
    draft.closed = block.type === 'tool-call' && block.id === '' ? { ...block, id: callId(draft) } : block
  }

  #emitted(): ContentBlock[] {
    return [...this.#drafts.values()].filter(draft => !isNothing(draft)).map(toBlock)
  }

  #keeps(block: ContentBlock | undefined): boolean {
    return this.#finish?.reason.kind !== 'max-tokens' || block?.type !== 'tool-call'
  }
}

const stop: FinishReason = Object.freeze({ kind: 'stop' })

function toBlock(draft: Draft): ContentBlock {
  const { type, text, closed } = draft
  if (closed !== undefined) return closed
  if (type === 'text' || type === 'reasoning') return { type, text }
  if (type === 'tool-call') return { type, id: callId(draft), name: draft.name, arguments: text }
  throw new HarnessError('OPEN_BLOCK', `block of type "${type}" was never ended`)
}

/** An id that the provider left out is made once and stays; it is unlike any other of the session. */
function callId(draft: Draft): CallId {
  if (draft.id === '') draft.id = `call_${randomUUID()}`
  return CallId(draft.id)
}

function isProse(type: string): boolean {
  return type === 'text' || type === 'reasoning'
}

/** Begun, and nothing came of it. */
function isNothing(draft: Draft): boolean {
  return draft.closed === undefined && isProse(draft.type) && draft.text === ''
}
