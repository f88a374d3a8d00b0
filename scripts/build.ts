import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { BuildOptions, Metafile } from 'esbuild'
import { writeStartScript } from './start-script.ts'

interface Manifest {
  name: string
  exports: Record<string, { 'dsh-source': string; default: string }>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** A module that a package's `exports` opens, with any pattern written out. */
interface PublicModule {
  specifier: string
  source: string
  /** Where it goes below dist, without extension. */
  out: string
}

const packages = join(import.meta.dirname, '../packages')
const libraries = ['protocol', 'harness']

/** By a run, once the model wants a command: not needed before, and needed by most. */
const loadedByFirstCommand = [
  'approval/look-up',
  'approval/rules-file',
  'destructive/care',
  'rewind/workspace',
  'sandbox/confiner',
  'sandbox/reach',
  'shell-command/collect',
].map(name => `harness/src/plugins/${name}.ts`)

for (const name of [...libraries, 'cli'])
  rmSync(join(packages, name, 'dist'), { recursive: true, force: true })
await Promise.all([...libraries.map(bundleLibrary), bundleCommand()])
emitTypes()

/** A library leaves its dependencies outside, for a consumer to share. */
async function bundleLibrary(name: string): Promise<void> {
  const entries = publicModules(name).map(({ out, source }) => [out, source])
  await bundle(name, { entryPoints: Object.fromEntries(entries), packages: 'external' })
}

/** The command holds all but the dependencies it names, and every module that a plugin may ask it for. */
async function bundleCommand(): Promise<void> {
  const { dependencies, optionalDependencies } = manifestOf('cli')
  const entries = libraries.flatMap(publicModules).map(({ specifier, source }) => [specifier, source])
  const outputs = await bundle('cli', {
    entryPoints: { main: join(packages, 'cli/src/main.ts'), ...Object.fromEntries(entries) },
    external: Object.keys({ ...dependencies, ...optionalDependencies }),
    // CommonJS dependencies load the built-ins through it. The alias keeps clear of a source that imports the same.
    banner: {
      js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url)",
    },
  })
  const outputOf = (source: string): string => {
    const file = Object.keys(outputs).find(each => outputs[each]?.entryPoint === `packages/${source}`)
    if (file === undefined) throw new Error(`${source} is not loaded by itself`)
    return file
  }
  await writeStartScript({
    folder: join(packages, 'cli/dist'),
    outputs,
    roots: ['main.js', outputOf('cli/src/commands/run.ts')],
    later: loadedByFirstCommand.map(outputOf),
    runner: join(packages, 'cli/src/code-cache.ts'),
  })
}

/** Gives what was written, by names below `dist`. */
async function bundle(name: string, options: BuildOptions): Promise<Metafile['outputs']> {
  const { metafile } = await build({
    ...options,
    metafile: true,
    absWorkingDir: join(packages, '..'),
    outdir: join(packages, name, 'dist'),
    chunkNames: 'chunks/[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    conditions: ['dsh-source'],
    mainFields: ['module', 'main'],
    logLevel: 'warning',
  })
  const { length } = `packages/${name}/dist/`
  const outputs = Object.entries(metafile.outputs).map(([file, { imports, ...output }]) => {
    const own = imports.map(one => (one.external === true ? one : { ...one, path: one.path.slice(length) }))
    return [file.slice(length), { ...output, imports: own }] as const
  })
  return Object.fromEntries(outputs)
}

/** One program for all packages, checked as `npm run typecheck` does. Tests are no part of it: they name what they like. */
function emitTypes(): void {
  const root = join(packages, '..')
  const out = mkdtempSync(join(tmpdir(), 'dsh-types-'))
  const project = join(out, 'tsconfig.json')
  const typeRoots = [join(root, 'node_modules/@types')]
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: root,
    outDir: out,
    typeRoots,
  }
  const include = libraries.map(name => join(packages, name, 'src'))
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions,
    include,
    exclude: [join(root, '**/*.test.ts')],
  }
  writeFileSync(project, JSON.stringify(config))
  execFileSync('tsc', ['--project', project], { cwd: root, stdio: 'inherit' })
  for (const name of libraries) {
    cpSync(join(out, 'packages', name, 'src'), join(packages, name, 'dist'), { recursive: true })
  }
  rmSync(out, { recursive: true })
}

function publicModules(name: string): PublicModule[] {
  const manifest = manifestOf(name)
  return Object.entries(manifest.exports).flatMap(([subpath, target]) => {
    const pattern = target['dsh-source']
    const [before = '', after = ''] = pattern.split('*')
    const files = globSync(pattern, { cwd: join(packages, name), exclude: ['**/*.test.ts'] })
    if (files.length === 0) throw new Error(`${manifest.name} exports ${subpath}, but there is no ${pattern}`)
    return files.map(file => {
      const star = file.slice(before.length - './'.length, file.length - after.length)
      return {
        specifier: `${manifest.name}${subpath.slice(1)}`.replace('*', star),
        source: join(packages, name, file),
        out: target.default.slice('./dist/'.length, -'.js'.length).replace('*', star),
      }
    })
  })
}

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as Manifest
}
