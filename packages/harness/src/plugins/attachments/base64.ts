/** Bytes in base64 in its one canonical form; undefined for any other text, and for more than `maxBytes`. */
export function decodeBase64(text: string, maxBytes: number): Buffer | undefined {
  if (text.length > Math.ceil(maxBytes / 3) * 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
