import type { Io } from './io.ts'

export interface Style {
  readonly color: boolean
}

/** How one of the outputs is written: `NO_COLOR` with any value but an empty one forbids colours. */
export function styleOf(output: 'out' | 'err', io: Io): Style {
  return { color: io[output].isTerminal && !io.env.NO_COLOR }
}

const codes = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const

export function paint(text: string, color: keyof typeof codes, style: Style): string {
  const [on, off] = codes[color]
  return style.color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
}
