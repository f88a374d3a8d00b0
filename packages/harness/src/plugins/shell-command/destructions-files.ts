import type { Loss } from './loss.ts'
import { split } from './split.ts'
import type { Argument, Split } from './split.ts'
import type { ShellCommand } from './program.ts'

type Reader = (args: readonly Argument[]) => readonly Loss[]

const readers: Readonly<Record<string, Reader>> = {
  // It refuses to remove where it stands, and what is above.
  rm: args => deleting(split(args).operands.filter(({ value }) => !/(?:^|\/)\.\.?\/*$/.test(value ?? ''))),
  unlink: args => deleting(split(args).operands),
  shred: args => deleting(split(args, ['n', 's']).operands),
  mkfs: args => deleting(split(args, ['t']).operands),
  wipefs: args => deleting(split(args).operands),
  blkdiscard: args => deleting(split(args).operands),
  find: readFind,
  mv: args => [...readCopy(args, { isDeep: false }), ...readMovedAway(args)],
  cp: args => readCopy(args, { isDeep: /[rRa]/ }),
  install: args => readCopy(args, { isDeep: false }),
  // Its -n is no promise to leave files alone.
  ln: args =>
    has(args, 'f', '--force') ? readCopy(args, { isDeep: false, sparing: ['b', '--backup'] }) : [],
  uniq: args => overwriting(split(args, ['f', 's', 'w']).operands.slice(1, 2)),
  zip: args => (has(args, 'm', '--move') ? deleting(split(args).operands.slice(1)) : []),
  rsync: readRsync,
  truncate: args => overwriting(split(args, ['s', 'r']).operands),
  tee: args => (has(args, 'a', '--append') ? [] : overwriting(split(args).operands)),
  dd: readDd,
  tar: readTar,
  unzip: readUnzip,
  curl: readCurl,
  wget: args => overwriting(valuesOf(split(args, ['O', '--output-document']), ['O', '--output-document'])),
}

/** What a command that is not git may destroy. */
export function fileLosses({ words, stems }: ShellCommand, program: string): readonly Loss[] {
  const args = words.map((value, index) => ({ value, stem: stems[index] ?? '' })).slice(1)
  return Object.hasOwn(readers, program) ? (readers[program]?.(args) ?? []) : readOutput(args)
}

const outputOption = /^(?:-[a-zA-Z]*o|--?out|--output)$/
const outputValue = /^(?:-o|--output=)(?![-=])/

/** Most programs that write a file take its name like this; for others a file of that name has to be there by chance. */
function readOutput(args: readonly Argument[]): readonly Loss[] {
  return overwriting(
    args.flatMap((arg, index) => {
      if (outputOption.test(arg.value ?? '')) return args[index + 1] ?? []
      const [start] = outputValue.exec(arg.stem) ?? []
      return start === undefined ? [] : withoutStart(arg, start.length)
    }),
  )
}

function withoutStart({ value, stem }: Argument, length: number): Argument {
  return { value: value?.slice(length), stem: stem.slice(length) }
}

/** The folder that all of a pattern lies in, as `folder/*`, where it is sure. */
export function folderOf(stem: string): string | undefined {
  const at = stem.lastIndexOf('/')
  return at < 0 ? undefined : `${stem.slice(0, at + 1)}*`
}

function deleting(operands: readonly Argument[]): readonly Loss[] {
  return operands.length === 0 ? [] : [{ kind: 'delete', paths: operands.map(pathOf), isDeep: true }]
}

function overwriting(operands: readonly Argument[]): readonly Loss[] {
  const paths = operands
    .map(pathOf)
    .filter(path => path === undefined || (!path.startsWith('/dev/') && path !== '-'))
  return paths.length === 0 ? [] : [{ kind: 'overwrite', paths }]
}

function pathOf({ value, stem }: Argument): string | undefined {
  return value ?? folderOf(stem)
}

/** Where each file of a copy or a move comes to lie: the target, or in it under its own name. */
function readCopy(
  args: readonly Argument[],
  {
    isDeep,
    sparing = ['n', '--no-clobber', 'b', '--backup'],
  }: { readonly isDeep: false | RegExp; readonly sparing?: readonly string[] },
): readonly Loss[] {
  const { options, values, operands } = split(args, ['t', 'S', 'm', 'o', 'g', '--target-directory'])
  if (sparing.some(option => options.has(option))) return []
  const folder = values.get('t') ?? values.get('--target-directory')
  const target = folder ?? operands.at(-1)
  const sources = folder === undefined ? operands.slice(0, -1) : operands
  // One word may become several.
  if (sources.length === 0 && target?.stem === '') return overwriting([target])
  if (target === undefined || sources.length === 0) return []
  const isTree =
    isDeep !== false &&
    [...options].some(
      option =>
        option === '--recursive' || option === '--archive' || (option.length === 1 && isDeep.test(option)),
    )
  const place = pathOf(target)
  if (isTree) return [{ kind: 'overwrite', paths: [place], isDeep: true }]
  const inside = sources.map(({ value }) =>
    value === undefined || place === undefined ? undefined : `${place}/${baseName(value)}`,
  )
  return [{ kind: 'overwrite', paths: [place, ...inside] }]
}

function readFind(args: readonly Argument[]): readonly Loss[] {
  const isDeleting = args.some(({ value }) => value === '-delete')
  const written = args.flatMap((arg, index) =>
    /^-(?:fprint|fprint0|fprintf|fls)$/.test(arg.value ?? '') ? [args[index + 1]] : [],
  )
  const places = placesOf(args)
  const isSelective = args.some(({ value }) => /^-i?(?:name|path|regex|wholename)$/.test(value ?? ''))
  const all = places.length === 0 ? [{ value: '.', stem: '.' }] : places
  const deletes = isDeleting ? deleting(isSelective ? all.map(withSome) : all) : []
  return [...deletes, ...overwriting(written.filter(each => each !== undefined))]
}

/** Some of what is below, and not the folder itself. */
function withSome({ value, stem }: Argument): Argument {
  return { value: value === undefined ? undefined : `${value}/*`, stem }
}

/** Where a search begins: all words before the first condition. */
function placesOf(args: readonly Argument[]): readonly Argument[] {
  const rest = args.slice(
    args.findLastIndex(({ value }) => value === '-H' || value === '-L' || value === '-P') + 1,
  )
  const end = rest.findIndex(({ stem }) => /^[-(!]/.test(stem))
  return end < 0 ? rest : rest.slice(0, end)
}

function readRsync(args: readonly Argument[]): readonly Loss[] {
  const { operands } = split(args, ['e', 'f', '--exclude', '--include', '--rsh', '--filter'])
  const target = operands.at(-1)
  if (target === undefined || operands.length < 2 || /^[^/]*:/.test(target.stem)) return []
  const isDeleting = args.some(({ value }) => value?.startsWith('--del') === true)
  return [{ kind: isDeleting ? 'delete' : 'overwrite', paths: [pathOf(target)], isDeep: true }]
}

function readDd(args: readonly Argument[]): readonly Loss[] {
  const targets = args.filter(({ stem }) => stem.startsWith('of='))
  if (targets.length === 0) return []
  const paths = targets.map(({ value, stem }) => value?.slice(3) ?? folderOf(stem.slice(3)))
  return [{ kind: 'overwrite', paths }]
}

function readTar(args: readonly Argument[]): readonly Loss[] {
  const [first] = args
  const isExtracting =
    has(args, 'x', '--extract') || has(args, 'x', '--get') || /^[a-zA-Z]*x/.test(first?.value ?? '-')
  const { options, values } = split(args, ['C', 'f', '--directory', '--file'])
  if (!isExtracting) return readArchive(args, values)
  if (options.has('k') || options.has('--keep-old-files')) return []
  const folder = values.get('C') ?? values.get('--directory') ?? { value: '.', stem: '.' }
  return [{ kind: 'overwrite', paths: [pathOf(folder)], isDeep: true }]
}

/** The archive itself, and what goes once it is in there. */
function readArchive(args: readonly Argument[], values: Split['values']): readonly Loss[] {
  const cluster = args[0]?.value ?? ''
  const isMaking = /^-?[a-zA-Z]*c/.test(cluster) || has(args, 'c', '--create')
  const isOld = isMaking && /^[a-zA-Z]*f[a-zA-Z]*$/.test(cluster)
  const archive = isOld ? args[1] : (values.get('f') ?? values.get('--file'))
  const removed = has(args, '', '--remove-files') ? split(args, ['f', '--file']).operands : []
  return [...(isMaking && archive !== undefined ? overwriting([archive]) : []), ...deleting(removed)]
}

/** What leaves the folder comes to lie where nothing may be kept. */
function readMovedAway(args: readonly Argument[]): readonly Loss[] {
  const { values, operands } = split(args, ['t', 'S', '--target-directory'])
  const folder = values.get('t') ?? values.get('--target-directory')
  const target = folder ?? operands.at(-1)
  if (target === undefined || !/^(?:\/|\.\.(?:\/|$)|$)/.test(target.stem)) return []
  return deleting(folder === undefined ? operands.slice(0, -1) : operands)
}

function readCurl(args: readonly Argument[]): readonly Loss[] {
  const read = split(args, ['o', '--output'])
  const isNamed = read.options.has('O') || read.options.has('--remote-name')
  const names = read.operands.map(({ value }) => ({ value: value && baseName(value), stem: '' }))
  return [
    ...overwriting(valuesOf(read, ['o', '--output'])),
    ...(isNamed ? overwriting(names.filter(({ value }) => value !== undefined)) : []),
  ]
}

function readUnzip(args: readonly Argument[]): readonly Loss[] {
  const { options, values } = split(args, ['d'])
  // Without either it asks, and its answer may come from a pipe.
  if (['n', 'l', 't', 'v', 'p', 'z'].some(option => options.has(option))) return []
  return [{ kind: 'overwrite', paths: [pathOf(values.get('d') ?? { value: '.', stem: '.' })], isDeep: true }]
}

function valuesOf({ values }: Split, names: readonly string[]): readonly Argument[] {
  return names.flatMap(name => values.get(name) ?? [])
}

function has(args: readonly Argument[], letter: string, long: string): boolean {
  const { options } = split(args)
  return options.has(letter) || options.has(long)
}

function baseName(path: string): string {
  const plain = path.replace(/\/+$/, '')
  return plain.slice(plain.lastIndexOf('/') + 1)
}
