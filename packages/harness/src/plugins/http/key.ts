/** A key as it may go into a header. */
export type CheckedKey =
  | { readonly key: string; readonly problem?: undefined }
  | { readonly key?: undefined; readonly problem: string }

/** Trims white space around; anything but printable ASCII inside is a slip of copying. Never repeats the key. */
export function checkKey(text: string): CheckedKey {
  const key = text.trim()
  if (key === '') return { problem: 'it is empty' }
  const at = key.search(/[^\x21-\x7e]/)
  if (at === -1) return { key }
  return {
    problem: `character ${at + 1} of ${key.length} is not printable ASCII, which no key holds; copy it again`,
  }
}
