import type { ContentBlock, ImageBlock, Message } from '@dsh/protocol'
import type { GenerateOptions } from './adapter.ts'

export interface WireTarget {
  /** Pictures become text where the model is known to see none. */
  readonly seesImages: boolean
  /** Whether the adapter that is about to be called may read its own notes of `provider`. */
  owns(provider: string): boolean
}

/**
 * The request as the adapter gets it; `options` itself where nothing is to change.
 *
 * Changed messages are made once for each original, so an adapter may keep its wire form by identity.
 */
export function toWireRequest(options: GenerateOptions, target: WireTarget): GenerateOptions {
  const messages = mapChanged(options.messages, message => toWireMessage(message, target))
  return messages === options.messages ? options : Object.freeze({ ...options, messages })
}

function toWireMessage(message: Message, target: WireTarget): Message {
  const { source } = message
  const isForeign =
    source.kind === 'model' && source.replayState !== undefined && !target.owns(source.provider)
  const readable = isForeign ? remembered(withoutNotes, message, stripNotes) : message
  return target.seesImages ? readable : remembered(withoutImages, readable, replaceImages)
}

const withoutNotes = new WeakMap<Message, Message>()
const withoutImages = new WeakMap<Message, Message>()

function remembered(
  cache: WeakMap<Message, Message>,
  message: Message,
  change: (message: Message) => Message,
): Message {
  const known = cache.get(message)
  if (known !== undefined) return known
  const changed = change(message)
  cache.set(message, changed)
  return changed
}

function stripNotes(message: Message): Message {
  if (message.source.kind !== 'model') return message
  const { kind, provider, model } = message.source
  return Object.freeze({ ...message, source: Object.freeze({ kind, provider, model }) })
}

function replaceImages(message: Message): Message {
  const content = mapChanged(message.content, block => {
    if (block.type !== 'tool-result') return replaceImage(block)
    const inner = mapChanged(block.content, replaceImage)
    return inner === block.content ? block : Object.freeze({ ...block, content: inner })
  })
  return content === message.content ? message : Object.freeze({ ...message, content })
}

function replaceImage(block: ContentBlock): ContentBlock {
  return block.type === 'image' ? Object.freeze({ type: 'text', text: imagePlaceholder(block) }) : block
}

/** Stands for a picture in the request to a model that sees none; the same for the same picture for ever. */
export function imagePlaceholder({ attachment }: ImageBlock): string {
  const { mediaType, width, height } = attachment
  const size = width === undefined || height === undefined ? '' : `, ${width}×${height} pixels`
  return `[Image not shown: this model reads text only (${mediaType}${size}).]`
}

/** `list` itself where `change` gives every entry back. */
function mapChanged<T>(list: readonly T[], change: (entry: T) => T): readonly T[] {
  const { length } = list
  let changed: T[] | undefined
  // Runs over the whole history for each request; an iterator takes twice as long.
  for (let index = 0; index < length; index++) {
    const entry = list[index] as T
    const next = change(entry)
    if (next === entry) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed === undefined ? list : Object.freeze(changed)
}
