/** What a terminal obeys: CSI, OSC, the other string commands, short ESC sequences, and their 8-bit forms. */
const sequences = new RegExp(
  [
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]`,
    String.raw`(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?`,
    String.raw`(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\x90\x98\x9e\x9f]*(?:\x1b\\|\x9c)`,
    String.raw`\x1b[ -/]*[0-~]`,
  ].join('|'),
  'g',
)
/** The beginning of one at the end of a text. */
const openSequence = new RegExp(
  [
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*`,
    String.raw`(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*\x1b?`,
    String.raw`(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\x90\x98\x9e\x9f]*\x1b?`,
    String.raw`\x1b[ -/]*`,
  ].join('|'),
)
const sequenceStart = new RegExp(String.raw`[\x1b\x90\x98\x9b\x9d-\x9f]`, 'g')
/** A sequence longer than this is no longer waited for. */
const longestSequence = 4096

const controls = new RegExp(String.raw`[\0-\x08\x0b-\x1f\x7f-\x9f]`)
/** Carriage returns and backspaces are left to those who draw lines. */
const controlRuns = new RegExp(String.raw`([\0-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f])\1*`, 'g')
/** As many of one sign in a row are counted instead of shown. */
const longRun = 16
const pieceLength = 64 * 1024

/**
 * What a person would see of a text in a terminal that obeys nothing: sequences are gone, a line that was drawn anew
 * stands there as it was drawn last, and other control characters are shown as signs.
 */
export function inertText(text: string): string {
  if (!controls.test(text)) return text
  const plain = text.replace(sequences, '')
  return showControls(plain.includes('\r') || plain.includes('\b') ? drawLines(plain) : plain)
}

/** The same for text that comes in pieces, but that lines are still drawn anew. */
export class InertStream {
  #held = ''

  push(piece: string): string {
    const text = this.#held + piece
    this.#held = openAtEnd(text)
    return showControls(text.slice(0, text.length - this.#held.length).replace(sequences, ''))
  }

  /** What was held back as the beginning of a sequence that never came. */
  end(): string {
    const rest = this.#held.replace(sequences, '')
    this.#held = ''
    return showControls(rest)
  }
}

/** Without the beginning of a sequence at the end, where a text was cut. */
export function withoutOpenSequence(text: string): string {
  return text.slice(0, text.length - openAtEnd(text).length)
}

function openAtEnd(text: string): string {
  const tail = text.slice(-longestSequence)
  for (const { index } of tail.matchAll(sequenceStart)) {
    const rest = tail.slice(index)
    if (openSequence.exec(rest)?.[0] === rest) return rest
  }
  return ''
}

function drawLines(text: string): string {
  return text
    .split('\n')
    .map(line => {
      const drawn = line.includes('\r') ? lastDrawing(line) : line
      return drawn.includes('\b') ? withoutErased(drawn) : drawn
    })
    .join('\n')
}

/** What stands behind the last carriage return that something follows. */
function lastDrawing(line: string): string {
  let end = line.length
  while (line[end - 1] === '\r') end--
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

function withoutErased(line: string): string {
  const kept: string[] = []
  for (const char of line) {
    if (char === '\b') kept.pop()
    else kept.push(char)
  }
  return kept.join('')
}

/** In pieces: what one replacement collects on its way is many times the size of a text of nothing but signs. */
function showControls(text: string): string {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += pieceLength)
    pieces.push(text.slice(at, at + pieceLength).replace(controlRuns, showRun))
  return pieces.join('')
}

function showRun(run: string): string {
  const sign = signOf(run.charCodeAt(0))
  return run.length < longRun ? sign.repeat(run.length) : `${sign}[×${run.length}]`
}

function signOf(code: number): string {
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : `\\x${code.toString(16)}`
}
