import type { ContentBlock, ImageBlock } from '@dsh/protocol'

/** What read gives, as a program gets it. */
export interface ReadValue {
  readonly type: 'file' | 'directory' | 'image'
  readonly path: string
  readonly lines: readonly { readonly number: number; readonly text: string }[]
  readonly totalLines: number
  readonly capped: boolean
  /** Of a picture, and of nothing else. */
  readonly image?: ImageBlock['attachment']
}

export function renderRead(value: ReadValue): string | readonly ContentBlock[] {
  const { type, path, lines, image } = value
  const frame = (content: string): string =>
    `<path>${path}</path>\n<type>${type}</type>\n<content>\n${content}\n</content>`
  if (image !== undefined)
    return [
      { type: 'text', text: frame(pictureText(image)) },
      { type: 'image', attachment: image },
    ]
  const rows = lines.map(({ number, text }) => (type === 'file' ? `${number}: ${text}` : text))
  const body = rows.length === 0 ? '' : `${rows.join('\n')}\n\n`
  return frame(body + footer(value))
}

function pictureText({ mediaType, width, height, bytes }: ImageBlock['attachment']): string {
  return `(${mediaType}, ${width}×${height} pixels, ${bytes} bytes)`
}

function footer({ type, path, lines, totalLines, capped }: ReadValue): string {
  const unit = type === 'file' ? 'lines' : 'entries'
  if (totalLines === 0) return type === 'file' ? '(the file is empty)' : '(the folder is empty)'
  const first = lines.at(0)?.number ?? 0
  const last = lines.at(-1)?.number ?? 0
  const notebook = path.endsWith('.ipynb') ? '; a Jupyter notebook as its JSON' : ''
  if (last === totalLines) return `(end; ${totalLines} ${unit} in all${notebook})`
  const why = capped ? 'cut for its size; ' : ''
  return `(${why}${unit} ${first}-${last} of ${totalLines}${notebook}; next offset ${last + 1})`
}
