import { cutText } from '@dsh/harness/tools'

/**
 * `text` with nothing in it that a terminal would act on: escapes and other controls become visible signs, and signs
 * that reorder a line are dropped. Line breaks and tabs stay.
 */
export function inert(text: string): string {
  return text.replace(acting, char => {
    const code = char.codePointAt(0) ?? 0
    if (code === 0x7f) return '␡'
    return code < 0x20 && code !== 0x0d ? String.fromCodePoint(0x2400 + code) : ''
  })
}

const acting = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** Inert, and a single line however long: a name with a line break in it looks like no second entry of a list. */
export function unbroken(text: string): string {
  return inert(text.replace(/\s*\n\s*/g, ' ⏎ '))
}

const lineBytes = 160

/** `text` on one line, cut where it is long. */
export function oneLine(text: string): string {
  return cutText(unbroken(text.trim()).replaceAll('\t', ' '), lineBytes)
}

/** A time span in the unit that fits: `12 ms`, `1.2 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  const span = Math.max(0, Math.round(ms))
  if (span < 1000) return `${span} ms`
  if (span < 59_950) return `${(span / 1000).toFixed(1)} s`
  const seconds = Math.round(span / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** `812 B`, `28.4 KB`, `1.2 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 999_950) return `${(bytes / 1000).toFixed(1)} KB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** `1 file`, `1,200 files`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `1,234` with the separators that everybody reads. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}
