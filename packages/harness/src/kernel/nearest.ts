/** `; did you mean "x"?` for the candidate at most two edits away, else nothing. */
export function nearest(word: string, candidates: Iterable<string>): string {
  let best: { readonly word: string; readonly edits: number } | undefined
  for (const candidate of candidates) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (edits <= 2 && edits < (best?.edits ?? Infinity)) best = { word: candidate, edits }
  }
  return best === undefined ? '' : `; did you mean "${best.word}"?`
}

/** How many characters differ, by Levenshtein. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(change, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
