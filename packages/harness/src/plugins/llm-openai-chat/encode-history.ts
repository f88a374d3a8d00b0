import type { Message } from '@dsh/protocol'
import type { WireCall, WirePart } from './encode-message.ts'
import { wireText } from './wire-text.ts'

interface Group {
  /** Calls that nobody has answered yet, by our id, in order. */
  readonly waiting: Map<string, string[]>
  readonly answered: Set<string>
  readonly answers: string[]
  readonly pictures: string[]
  /** What came between the calls and their results. */
  readonly others: string[]
}

/**
 * Writes wire messages in an order every host accepts: each call answered once and directly after it was made.
 *
 * Within the messages up to the next assistant message, results move up to their calls, missing ones are filled in,
 * second ones fall away, and results without a call become text of the user. `out` is JSON, a comma before each entry.
 */
export class HistoryWriter {
  readonly #onMended: (what: string) => void
  #out = ''
  #group: Group | undefined

  constructor(onMended: (what: string) => void) {
    this.#onMended = onMended
  }

  add(part: WirePart): void {
    switch (part.kind) {
      case 'calls':
        this.#close()
        this.#write(part.json)
        this.#group = openGroup(part.calls)
        break
      case 'result':
        this.#result(part)
        break
      case 'plain':
        if (part.role === 'assistant') this.#close()
        this.#write(part.json)
    }
  }

  /** All that was added, its last calls closed. */
  finish(): string {
    this.#close()
    return this.#out
  }

  #write(json: string): void {
    if (this.#group) this.#group.others.push(json)
    else this.#out += `,${json}`
  }

  #result(part: Extract<WirePart, { kind: 'result' }>): void {
    const group = this.#group
    const wireId = group?.waiting.get(part.callId)?.shift()
    if (group && wireId !== undefined) {
      group.answered.add(part.callId)
      group.answers.push(`{"role":"tool","tool_call_id":${JSON.stringify(wireId.toWellFormed())}${part.rest}`)
      group.pictures.push(...part.pictures)
    } else if (group?.answered.has(part.callId)) {
      this.#onMended(`a second result of call ${part.callId} is left out`)
    } else {
      this.#onMended(`the result of call ${part.callId} has no call before it and goes out as text`)
      this.#write(part.loose())
    }
  }

  #close(): void {
    const group = this.#group
    if (!group) return
    this.#group = undefined
    for (const answer of group.answers) this.#write(answer)
    for (const [id, wireIds] of group.waiting) {
      for (const wireId of wireIds) {
        this.#onMended(`call ${id} has no result`)
        const content = JSON.stringify(wireText.noResult)
        this.#write(
          `{"role":"tool","tool_call_id":${JSON.stringify(wireId.toWellFormed())},"content":${content}}`,
        )
      }
    }
    if (group.pictures.length > 0) {
      const intro = `{"type":"text","text":${JSON.stringify(wireText.picturesOf)}}`
      this.#write(`{"role":"user","content":[${[intro, ...group.pictures].join(',')}]}`)
    }
    for (const other of group.others) this.#write(other)
  }
}

function openGroup(calls: readonly WireCall[]): Group {
  const waiting = new Map<string, string[]>()
  for (const { id, wireId } of calls) {
    const same = waiting.get(id)
    if (same) same.push(wireId)
    else waiting.set(id, [wireId])
  }
  return { waiting, answered: new Set(), answers: [], pictures: [], others: [] }
}

/**
 * Where the part of a history begins whose wire form later messages may still change: the last assistant message with
 * tool calls, or the end where no such calls are open.
 */
export function openFrom(messages: readonly Message[]): number {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    if (message?.role !== 'assistant') continue
    if (message.content.some(block => block.type === 'tool-call')) return at
    if (message.content.some(block => block.type === 'text' && block.text.trim() !== ''))
      return messages.length
  }
  return messages.length
}
