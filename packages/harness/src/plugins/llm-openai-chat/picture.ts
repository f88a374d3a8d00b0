import type { ImageBlock } from '@dsh/protocol'
import type { PictureState } from './encode-message.ts'
import { wireText } from './wire-text.ts'

/** What goes over the wire for a picture: its data, typed by what the bytes are, or a text where they are no picture. */
export function toPicture(block: ImageBlock, bytes: Uint8Array | undefined): PictureState {
  const { mediaType } = block.attachment
  if (bytes === undefined) return { text: wireText.pictureMissing(mediaType) }
  const found = sniffed(bytes)
  if (found === undefined) return { text: wireText.pictureBroken(mediaType) }
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return { url: `data:${found};base64,${data}` }
}

const signatures: readonly { readonly type: string; readonly at: number; readonly bytes: string }[] = [
  { type: 'image/png', at: 0, bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/jpeg', at: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/gif', at: 0, bytes: 'GIF8' },
  { type: 'image/webp', at: 8, bytes: 'WEBP' },
]

function sniffed(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 16)).toString('latin1')
  return signatures.find(({ at, bytes: mark }) => head.startsWith(mark, at))?.type
}
