import type { PartKind, ProjectParts, TrustEntry } from '@dsh/harness/plugins/trust'
import { unbroken } from '../text.ts'

const shownFiles = 8

/** What a project brings, one line for each kind, and what of it is never loaded. */
export function partLines({ parts, refused }: ProjectParts): string {
  const kinds = [...new Set(parts.map(({ kind }) => kind))]
  const lines = kinds.map(kind =>
    partLine(
      kind,
      parts.flatMap(part => (part.kind === kind ? [part.path] : [])),
    ),
  )
  const never =
    refused.length === 0
      ? []
      : [`  ${'never'.padEnd(12)}  ${listed(refused)} (a link, too large, or not readable)`]
  return [...lines, ...never].map(line => `${line}\n`).join('')
}

function partLine(kind: PartKind, paths: readonly string[]): string {
  return `  ${kind.padEnd(12)}  ${listed(paths)}`
}

export function listed(paths: readonly string[]): string {
  const more = paths.length - shownFiles
  return unbroken(paths.slice(0, shownFiles).join(', ')) + (more > 0 ? ` and ${more} more` : '')
}

export function introLine(folder: string, isChanged: boolean): string {
  return isChanged
    ? `what ${unbroken(folder)} brings along has changed since it was trusted:\n`
    : `${unbroken(folder)} brings along:\n`
}

export const questionText = '? load this from now on, and let it run as you?  y or n (default): '
export const questionAgain = '  y or n: '

export function entryLine({ path, state, parts }: TrustEntry): string {
  const admitted = parts.length === 0 ? '' : `  ${parts.length} ${parts.length === 1 ? 'file' : 'files'}`
  return `${state.padEnd(9)}  ${unbroken(path)}${admitted}\n`
}
