import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

/** How much of a document is searched for what it says of its encoding. */
const declarationBytes = 4096

/**
 * The text of a body. Its encoding is what its first bytes mark, else what the header says, the document itself
 * (`meta`, XML declaration), and else UTF-8 where the bytes are that, windows-1252 where not. A name that nobody knows
 * counts as absent.
 */
export function decodeText(
  bytes: Uint8Array,
  charset: string | undefined,
  options: { readonly isHtml: boolean; readonly isCut: boolean },
): string {
  const decoder =
    marked(bytes) ??
    decoderFor(charset) ??
    declared(bytes, options.isHtml) ??
    (looksUtf8(bytes, options.isCut) ? utf8() : latin())
  return decoder.decode(bytes)
}

const utf8 = (): TextDecoder => new TextDecoder('utf-8')
const latin = (): TextDecoder => new TextDecoder('windows-1252')

function marked(bytes: Uint8Array): TextDecoder | undefined {
  const [first, second, third] = bytes
  if (first === 0xef && second === 0xbb && third === 0xbf) return utf8()
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be')
  return first === 0xff && second === 0xfe ? new TextDecoder('utf-16le') : undefined
}

function decoderFor(label: string | undefined): TextDecoder | undefined {
  if (label === undefined) return undefined
  try {
    return new TextDecoder(label)
  } catch {
    return undefined
  }
}

function declared(bytes: Uint8Array, isHtml: boolean): TextDecoder | undefined {
  const start = Buffer.from(bytes.subarray(0, declarationBytes)).toString('latin1')
  const [, xml] = /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']/i.exec(start) ?? []
  const [, meta] = (isHtml ? /<meta\s[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)/i.exec(start) : null) ?? []
  const label = meta ?? xml
  // Bytes that could be searched as ASCII are not UTF-16, whatever they say.
  return label !== undefined && /^utf-?16/i.test(label) ? utf8() : decoderFor(label)
}

/** A body that was cut may end inside a character. */
function looksUtf8(bytes: Uint8Array, isCut: boolean): boolean {
  const ends = isCut ? [0, 1, 2, 3] : [0]
  return ends.some(count => isUtf8(bytes.subarray(0, Math.max(0, bytes.length - count))))
}
