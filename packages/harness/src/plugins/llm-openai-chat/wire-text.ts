/** What the model reads in place of things that cannot be sent as they are. */
export const wireText = {
  noOutput: '(no output)',
  noContent: '(empty message)',
  noResult: 'No result of this call was recorded.',
  looseResult: 'Result of a tool call that is no longer part of this conversation:',
  pictureFollows: '[Image: it is in the next user message.]',
  picturesOf: 'Images from the tool results above:',
  pictureMissing: (mediaType: string): string => `[Image not shown: its data is missing (${mediaType}).]`,
  pictureBroken: (mediaType: string): string =>
    `[Image not shown: its data is no PNG, JPEG, GIF or WebP (${mediaType}).]`,
  pictureUnwanted: (mediaType: string): string =>
    `[Image not shown: this model reads text only (${mediaType}).]`,
  unknownBlock: (type: string): string => `[Content of type "${type}" cannot be shown to this model.]`,
} as const

/** The JSON string of `text`; half characters become U+FFFD and are counted through `onLone`. */
export function jsonString(text: string, onLone: (count: number) => void): string {
  if (text.isWellFormed()) return JSON.stringify(text)
  onLone(countLone(text))
  return JSON.stringify(text.toWellFormed())
}

const replacement = 0xfffd

function countLone(text: string): number {
  const mended = text.toWellFormed()
  let count = 0
  for (let at = 0; at < text.length; at++) {
    if (mended.charCodeAt(at) === replacement && text.charCodeAt(at) !== replacement) count++
  }
  return count
}

/** At most `limit` characters, never half of one; what was cut is said. */
export function clipped(text: string, limit: number): string {
  if (text.length <= limit) return text
  const cut = text.codePointAt(limit - 1) ?? 0
  const end = cut > 0xffff ? limit - 1 : limit
  return `${text.slice(0, end)}… (${text.length - end} more characters)`
}
