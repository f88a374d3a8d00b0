interface Kind {
  readonly magic?: string
  readonly endings: RegExp
  readonly text: string
}

/** What people keep in folders that is no text; the first that fits. */
const kinds: readonly Kind[] = [
  { magic: '%PDF-', endings: /\.pdf$/i, text: 'a PDF; in bash, pdftotext FILE - prints its text' },
  {
    magic: 'PK\x03\x04',
    endings: /\.(zip|jar|docx|xlsx|pptx|odt|ods)$/i,
    text: 'a ZIP archive, as Office documents are; in bash, unzip -l FILE lists it',
  },
  { magic: '\x1f\x8b', endings: /\.t?gz$/i, text: 'compressed; in bash, zcat FILE prints it' },
  {
    magic: 'SQLite format 3\0',
    endings: /\.sqlite3?$/i,
    text: 'an SQLite database; in bash, sqlite3 FILE reads it',
  },
  { magic: '\x7fELF', endings: /\.so$/i, text: 'a compiled program' },
  { endings: /\.(png|jpe?g|webp|gif)$/i, text: 'a picture, and pictures cannot be shown here' },
]

/** What a file that is no text is, by its first bytes, else by its name; undefined where nothing tells. */
export function binaryKind(path: string, bytes?: Uint8Array): string | undefined {
  const head =
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16)).toString('latin1')
  const known = kinds.find(({ magic, endings }) =>
    head === undefined ? endings.test(path) : magic !== undefined && head.startsWith(magic),
  )
  return known?.text
}
