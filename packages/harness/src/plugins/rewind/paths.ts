import { Buffer } from 'node:buffer'

/**
 * A path as bytes, one character a byte, `/` between folders: names need not be text. What a person or a log sees is
 * `shownPath`, from which `rawPath` gives the same bytes again.
 */
export type RawPath = string & { readonly __raw?: true }

const ascii = /^[\0-\x7f]*$/
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function shownPath(raw: RawPath): string {
  if (ascii.test(raw) && !raw.startsWith('"')) return raw
  try {
    const text = decoder.decode(Buffer.from(raw, 'latin1'))
    return text.startsWith('"') ? quotedPath(raw) : text
  } catch {
    return quotedPath(raw)
  }
}

export function rawPath(shown: string): RawPath {
  return shown.startsWith('"') ? unquoted(shown) : Buffer.from(shown, 'utf8').toString('latin1')
}

/** As git writes and reads it where a path stands in a line. */
export function quotedPath(raw: RawPath): string {
  const inner = raw.replace(/["\\]|[^\x20-\x7e]/g, char =>
    char === '"' || char === '\\' ? `\\${char}` : `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return `"${inner}"`
}

function unquoted(shown: string): RawPath {
  return shown
    .slice(1, -1)
    .replace(/\\(?:([0-7]{3})|(.))/g, (_, octal: string | undefined, char: string) =>
      octal === undefined ? char : String.fromCharCode(Number.parseInt(octal, 8)),
    )
}

/** What file calls take; `root` is a raw path too. */
export function callPath(root: RawPath, raw: RawPath): string | Buffer {
  const whole = raw === '' ? root : `${root}/${raw}`
  return ascii.test(whole) ? whole : Buffer.from(whole, 'latin1')
}

export function parentOf(raw: RawPath): RawPath {
  const slash = raw.lastIndexOf('/')
  return slash < 0 ? '' : raw.slice(0, slash)
}

export function joinRaw(folder: RawPath, name: string): RawPath {
  return folder === '' ? name : `${folder}/${name}`
}

/** The folders a path is in, the outermost first, without the workspace itself. */
export function foldersOf(raw: RawPath): RawPath[] {
  const found: RawPath[] = []
  for (let at = raw.indexOf('/'); at >= 0; at = raw.indexOf('/', at + 1)) found.push(raw.slice(0, at))
  return found
}
