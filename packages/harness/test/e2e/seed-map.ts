import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { codeIn, readTables } from './markdown-tables.ts'
import type { TableRow } from './markdown-tables.ts'
import { exportsOf, hasMember, membersOf } from './source-tree.ts'
import type { SourceTree } from './source-tree.ts'

/** What the map is held against. */
export interface Repository {
  readonly root: string
  readonly sources: SourceTree
  /** Imports a package by the name that users write. */
  readonly load: (specifier: string) => Promise<Readonly<Record<string, unknown>>>
}

/** What a row says of ours: names, nothing yet, or nothing ever. */
type Counterpart =
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'later'; readonly place: string }
  | { readonly kind: 'absent' }

const kinds = {
  'Service keys': 'Services',
  'Events on the bus': 'Events',
  'Events in the log': 'SessionEventMap',
}
type Kind = (typeof kinds)[keyof typeof kinds]

const harness = 'packages/harness/src/'

/** Everything that the map says and that is not so, or that it should say and does not. */
export async function problemsOf(map: string, repository: Repository): Promise<string[]> {
  const rows = readTables(map)
  const known = knownNames(repository.sources)
  const lines = await Promise.all(
    rows.map(async row => {
      const problems = [
        ...(await problemsOfNames(row, repository)),
        ...problemsOfAbsence(row, repository, known),
      ]
      return problems.map(problem => `line ${row.line}: ${problem}`)
    }),
  )
  return [...lines.flat(), ...missingRows(rows, repository.sources)]
}

async function problemsOfNames(row: TableRow, repository: Repository): Promise<string[]> {
  const here = counterpartOf(row)
  const { section, cells } = row
  if (here.kind !== 'names' || (cells['Here'] ?? cells['Where']) === undefined) return []
  const { names } = here
  if (names.length === 0) return ['the row names nothing of ours']
  if (cells['Where'] !== undefined) return names.flatMap(path => problemsOfPath(path, repository))
  if (section === 'Packages') return problemsOfPackage(names, cells['Imported as'] ?? '', repository)
  const { sources } = repository
  const kind = kinds[section as keyof typeof kinds]
  if (kind === 'Services') return names.flatMap(key => problemsOfService(key, row, sources))
  if (kind !== undefined) return names.flatMap(name => problemsOfEvent(name, kind, row, sources))
  const path = pathOf(cells['File'])
  if (section === 'Codes') return problemsOfCodes(names, path, sources)
  const found = await Promise.all(names.map(name => problemsOfExport(name, path, section, repository)))
  return found.flat()
}

function problemsOfPath(path: string, { root }: Repository): string[] {
  return existsSync(join(root, placeOf(path))) ? [] : [`${path} is not there`]
}

async function problemsOfPackage(
  folders: readonly string[],
  imported: string,
  repository: Repository,
): Promise<string[]> {
  const missing = folders.flatMap(folder => problemsOfPath(folder, repository))
  const specifiers = codeIn(imported)
  const loaded = await Promise.allSettled(specifiers.map(repository.load))
  const unloadable = specifiers.filter((_, index) => loaded[index]?.status === 'rejected')
  return [...missing, ...unloadable.map(specifier => `${specifier} cannot be imported`)]
}

/** A service is declared under its key with its type, and the file declares that type. */
function problemsOfService(key: string, row: TableRow, sources: SourceTree): string[] {
  const service = membersOf(sources, 'Services').get(key)
  const path = pathOf(row.cells['File'])
  if (service === undefined) return [`ctx.${key} is not declared`]
  if (service.type !== codeIn(row.cells['Type'] ?? '')[0]) return [`ctx.${key} is a ${service.type}`]
  if (sources.get(path)?.declarations.has(service.type) === true) return []
  return [`${path} does not declare ${service.type}`]
}

/** An event is declared in the file; one of the bus in the mode of the row. */
function problemsOfEvent(name: string, kind: Kind, row: TableRow, sources: SourceTree): string[] {
  const event = membersOf(sources, kind).get(name)
  const { File: file, Mode: mode = '' } = row.cells
  if (event === undefined) return [`"${name}" is not declared`]
  if (event.path !== pathOf(file)) return [`"${name}" is declared in ${event.path}`]
  if (kind === 'SessionEventMap' || event.type.toLowerCase() === mode) return []
  return [`"${name}" is dispatched as ${event.type.toLowerCase()}`]
}

function problemsOfCodes(codes: readonly string[], path: string, sources: SourceTree): string[] {
  const text = sources.get(path)?.text ?? ''
  return codes.filter(code => !text.includes(`'${code}'`)).map(code => `${path} does not name ${code}`)
}

/** `Name` or `Name.member`: declared in the file, and given by the folder's public door. */
async function problemsOfExport(
  name: string,
  path: string,
  section: string,
  { sources, load }: Repository,
): Promise<string[]> {
  const [owner = '', member] = name.split('.')
  const file = sources.get(path)
  const declaration = file?.declarations.get(owner)
  if (file === undefined) return [`${path} is not there`]
  if (declaration === undefined && !file.passedOn.has(owner)) return [`${path} does not export ${owner}`]
  if (member !== undefined && !hasMember(sources, path, owner, member)) return [`${owner} has no ${member}`]
  if (section === 'Inside') return []
  const { specifier, index } = doorOf(path)
  if (!exportsOf(sources, index).has(owner)) return [`${specifier} does not export ${owner}`]
  if (declaration?.isType === true) return []
  return owner in (await load(specifier)) ? [] : [`${specifier} does not give ${owner}`]
}

/** What is not there, or not yet, must not be found anywhere. */
function problemsOfAbsence(row: TableRow, { root }: Repository, known: ReadonlySet<string>): string[] {
  const here = counterpartOf(row)
  if (here.kind === 'names') return []
  const seedNames = codeIn(Object.values(row.cells)[0] ?? '').map(name => name.replace(/^ctx\./, ''))
  const found = row.cells['Where'] === undefined ? seedNames.filter(name => known.has(name)) : []
  const problems = found.map(name => `"${name}" is there: say what it is`)
  if (here.kind === 'later' && existsSync(join(root, placeOf(here.place))))
    problems.push(`${here.place} is there: say what it brings`)
  return problems
}

/** Every service and event of the sources has a row. */
function missingRows(rows: readonly TableRow[], sources: SourceTree): string[] {
  return Object.entries(kinds).flatMap(([section, kind]) => {
    const listed = new Set(
      rows
        .filter(row => row.section === section)
        .map(counterpartOf)
        .flatMap(here => (here.kind === 'names' ? here.names : [])),
    )
    const declared = [...membersOf(sources, kind)]
    return declared
      .filter(([name]) => !listed.has(name))
      .map(([name, { path }]) => `"${name}" of ${path} has no row under "${section}"`)
  })
}

/** All that the sources export, all service keys and all events. */
function knownNames(sources: SourceTree): ReadonlySet<string> {
  const exported = [...sources.values()].flatMap(({ declarations, passedOn }) => [
    ...declarations.keys(),
    ...passedOn,
  ])
  return new Set([...exported, ...Object.values(kinds).flatMap(kind => [...membersOf(sources, kind).keys()])])
}

function counterpartOf({ cells }: TableRow): Counterpart {
  const text = cells['Where'] ?? cells['Here'] ?? ''
  const codes = codeIn(text)
  if (text.startsWith('comes later')) return { kind: 'later', place: codes[0] ?? '' }
  if (text.startsWith('not here')) return { kind: 'absent' }
  return { kind: 'names', names: withOwners(codes) }
}

/** `Session.append`, `.events` means `Session.events` by the second. */
function withOwners(codes: readonly string[]): string[] {
  let owner = ''
  return codes.map(code => {
    if (code.startsWith('.')) return owner + code
    owner = code.split('.')[0] ?? ''
    return code
  })
}

/** Paths in the map count from the harness's sources, unless they name a folder of the repository. */
function placeOf(path: string): string {
  if (/^(packages|docs|examples|python)\b/.test(path)) return path
  return harness + (path.includes('/') || existsAtTop(path) ? path : `plugins/${path}`)
}

function existsAtTop(path: string): boolean {
  return ['kernel', 'presets', 'testing', 'servers'].includes(path)
}

function pathOf(cell: string | undefined): string {
  return placeOf(codeIn(cell ?? '')[0] ?? '')
}

/** How users import what a file declares. */
function doorOf(path: string): { readonly specifier: string; readonly index: string } {
  if (path.startsWith('packages/protocol/')) {
    return { specifier: '@dsh/protocol', index: 'packages/protocol/src/index.ts' }
  }
  const inner = posix.relative(harness, path)
  const [first = '', second = ''] = inner.split('/')
  if (first === 'presets') return { specifier: `@dsh/harness/${inner.replace(/\.ts$/, '')}`, index: path }
  const isLoader = inner.startsWith('kernel/loader/')
  const folder = isLoader
    ? 'kernel/loader'
    : ['core', 'plugins'].includes(first)
      ? `${first}/${second}`
      : first
  const name = folder.replace(/^(core|kernel)\//, '')
  return { specifier: `@dsh/harness/${name}`, index: `${harness}${folder}/index.ts` }
}
