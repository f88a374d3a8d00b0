import type { FileMatches } from './matches.ts'

interface Ignored {
  readonly paths: readonly string[]
  readonly isMore: boolean
}

export interface GlobValue {
  readonly paths: readonly string[]
  readonly total: number
  /** Top-level folders that have files which fit. */
  readonly folders: number
  readonly artifact?: string
  readonly unreadable: number
  readonly ignored?: Ignored
  /** Folders that the pattern begins with and that are not there. */
  readonly missing?: string
}

export type GrepMode = 'content' | 'files_with_matches' | 'count'

export interface GrepValue {
  readonly mode: GrepMode
  readonly files: readonly (FileMatches & { readonly count?: number })[]
  readonly matches: number
  readonly totalFiles: number
  /** Of matches, or of files where only files are listed. */
  readonly offset: number
  readonly shown: number
  /** The search was stopped: there is more than was counted. */
  readonly isPartial: boolean
  readonly unreadable: number
  readonly ignored?: Ignored
  readonly missing?: string
}

const maxExamples = 3

export function renderGlob(value: GlobValue): string {
  const { paths, total, folders, artifact } = value
  if (total === 0) return noneFound('files', value)
  const list = paths.map(oneLine).join('\n')
  if (paths.length === total) return list + unreadableNote(value)
  const where = artifact === undefined ? '' : `; read artifact:${artifact} for all`
  const spread = folders > 1 ? `a spread over ${folders} folders, the newest of each` : 'the newest'
  return `${list}\n\n(${paths.length} of ${total} files: ${spread}${where})${unreadableNote(value)}`
}

export function renderGrep(value: GrepValue): string {
  const { mode, files, shown } = value
  if (value.totalFiles === 0) return noneFound('matches', value)
  const parts = files.map(file => {
    const path = oneLine(file.path)
    if (mode === 'files_with_matches') return path
    if (mode === 'count') return `${path}: ${file.count ?? 0}`
    const lines = file.lines.map(({ number, text, isMatch }) => `${number}${isMatch ? ':' : '-'} ${text}`)
    return `${path}\n${lines.join('\n')}`
  })
  const body = shown === 0 ? '' : `\n\n${parts.join(mode === 'content' ? '\n\n' : '\n')}`
  return `${grepHead(value)}${body}${unreadableNote(value)}`
}

function grepHead({ mode, matches, totalFiles, offset, shown, isPartial }: GrepValue): string {
  const least = isPartial ? 'more than ' : ''
  const inFiles = `${totalFiles} ${totalFiles === 1 ? 'file' : 'files'}`
  const found =
    mode === 'files_with_matches'
      ? inFiles
      : `${matches} ${matches === 1 ? 'match' : 'matches'} in ${inFiles}`
  const total = mode === 'content' ? matches : totalFiles
  const unit = mode === 'content' ? '' : mode === 'count' ? 'files ' : ''
  const next = offset + shown
  if (shown === 0) return `Found ${least}${found}; none from offset ${offset}`
  if (next >= total && !isPartial)
    return offset === 0 ? `Found ${found}` : `Found ${found}; ${unit}${offset + 1}-${next}, the last`
  return `Found ${least}${found}; ${unit}${offset + 1}-${next}, next offset ${next}`
}

function noneFound(what: 'files' | 'matches', { ignored, missing, ...rest }: GlobValue | GrepValue): string {
  if (missing !== undefined) return `No ${what} found: there is no ${missing}`
  const none = `No ${what} found${unreadableNote(rest)}`
  if (ignored === undefined) return none
  const { paths, isMore } = ignored
  const examples = paths
    .filter((_path, index) => index < maxExamples)
    .map(oneLine)
    .join(', ')
  const count = `${isMore ? 'more than ' : ''}${paths.length} ignored ${paths.length === 1 ? 'file fits' : 'files fit'}`
  const which = what === 'matches' ? 'one' : paths.length === 1 ? 'its folder' : 'a folder'
  const more = paths.length > maxExamples ? ', …' : ''
  return `${none}\n(${count}: ${examples}${more}; name ${which} as path to search it)`
}

/** A name may hold line ends; here it is one line. */
function oneLine(path: string): string {
  return path.replace(/[\r\n]/g, '?')
}

function unreadableNote({ unreadable }: { readonly unreadable: number }): string {
  return unreadable === 0 ? '' : `\n(${unreadable} ${unreadable === 1 ? 'path' : 'paths'} could not be read)`
}
