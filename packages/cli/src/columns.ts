/** Characters that take two columns of a terminal: East Asian ones, and pictures. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const zeroWidth = /^[\p{Mn}\p{Me}\p{Cf}]$/u

/** How many columns `text`, which is inert and one line, takes. */
export function columnsOf(text: string): number {
  let columns = 0
  for (const char of text) columns += columnsOfOne(char)
  return columns
}

/** `text` in exactly so many columns: cut with … where it is longer, filled with spaces where it is shorter. */
export function inColumns(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text + ' '.repeat(columns - columnsOf(text))
  let kept = ''
  let used = 0
  for (const char of text) {
    used += columnsOfOne(char)
    if (used > columns - 1) break
    kept += char
  }
  return `${kept}…${' '.repeat(columns - 1 - columnsOf(kept))}`
}

function columnsOfOne(char: string): number {
  if (zeroWidth.test(char)) return 0
  return wide.test(char) ? 2 : 1
}
