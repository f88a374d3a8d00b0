import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import type { Metafile, Plugin } from 'esbuild'

type Outputs = Metafile['outputs']

export interface StartScriptOptions {
  /** Where the build wrote to. */
  readonly folder: string
  /** What it wrote, by names below `folder`. */
  readonly outputs: Outputs
  /** What the program loads at its start; with all that these import. */
  readonly roots: readonly string[]
  /** What it imports soon after, when that is first needed; with all that these import. */
  readonly later: readonly string[]
  /** The module that runs the script, see `code-cache.ts`. */
  readonly runner: string
}

/**
 * Puts what a program loads at its start into one script with a code cache. A bundler that splits makes a file for each
 * set of entries, and to load dozens takes longer than their code does.
 *
 * What comes later is in it too and runs when it is first imported: it costs a start nothing but its share of the cache.
 *
 * Each file stays and gives what it gave, now from the script, so that whatever is loaded later meets the same modules.
 */
export async function writeStartScript({
  folder,
  outputs,
  roots,
  later,
  runner,
}: StartScriptOptions): Promise<void> {
  const first = closureOf(roots, outputs)
  const all = closureOf([...roots, ...later], outputs)
  const files = { first, later: all.filter(file => !first.includes(file)) }
  const text = await bundleScript(folder, outputs, files)
  const name = `start-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.cjs`
  writeFileSync(join(folder, name), text)
  await build({
    stdin: { contents: runnerText(name, runner), resolveDir: dirname(runner), loader: 'ts' },
    outfile: join(folder, 'start.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
  })
  for (const file of first) writeFileSync(join(folder, file), standIn(file, outputs))
  for (const file of files.later) writeFileSync(join(folder, file), laterStandIn(file, outputs))
}

interface ScriptFiles {
  readonly first: readonly string[]
  readonly later: readonly string[]
}

function closureOf(roots: readonly string[], outputs: Outputs): readonly string[] {
  const found = new Set<string>()
  const visit = (file: string): void => {
    if (found.has(file)) return
    found.add(file)
    for (const { path, kind, external } of outputs[file]?.imports ?? [])
      if (kind === 'import-statement' && external !== true) visit(path)
  }
  for (const root of roots) visit(root)
  return [...found]
}

async function bundleScript(
  folder: string,
  outputs: Outputs,
  { first, later }: ScriptFiles,
): Promise<string> {
  const lines = first.map(file => {
    const names = namesOf(file, outputs).map(name => `${name} as ${longName(file, name)}`)
    return `export { ${names.join(', ')} } from ${JSON.stringify(`./${file}`)}`
  })
  const loaders = later.map(
    file => `export const ${longName(file, 'load')} = () => import(${JSON.stringify(`./${file}`)})`,
  )
  const { outputFiles } = await build({
    stdin: { contents: [...lines, ...loaders].join('\n'), resolveDir: folder },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    packages: 'external',
    define: { 'import.meta.url': 'scriptUrl' },
    banner: { js: "(function (module, require, scriptUrl) { 'use strict';" },
    footer: { js: '})' },
    plugins: [keepOut(folder, { first: new Set(first), later: new Set(later) })],
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** What is no part of the script stays a file of its own. */
function keepOut(folder: string, { first, later }: Record<keyof ScriptFiles, ReadonlySet<string>>): Plugin {
  return {
    name: 'keep-out',
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) => {
        const file = relative(folder, join(resolveDir, path))
        // What runs at the start need not be imported in a way that tells when it runs.
        const isIn = later.has(file) || (kind === 'import-statement' && first.has(file))
        return isIn ? undefined : { path: `./${file}`, external: true }
      })
    },
  }
}

function runnerText(name: string, runner: string): string {
  return `
    import { getCompileCacheDir } from 'node:module'
    import { runCached } from ${JSON.stringify(runner)}
    const script = runCached(new URL(${JSON.stringify(name)}, import.meta.url), getCompileCacheDir())
    process.on('exit', () => script.keep())
    export const start = script.exports
  `
}

function standIn(file: string, outputs: Outputs): string {
  const names = namesOf(file, outputs)
  const lines = names.map((name, index) => `const value${index} = start.${longName(file, name)}`)
  const list = names.map((name, index) => `value${index} as ${name}`)
  const from = JSON.stringify(startFrom(file))
  return [`import { start } from ${from}`, ...lines, `export { ${list.join(', ')} }`, ''].join('\n')
}

function laterStandIn(file: string, outputs: Outputs): string {
  const names = namesOf(file, outputs)
  const values = names.map((name, index) => `${name}: value${index}`)
  const list = names.map((name, index) => `value${index} as ${name}`)
  return [
    `import { start } from ${JSON.stringify(startFrom(file))}`,
    `const { ${values.join(', ')} } = await start.${longName(file, 'load')}()`,
    `export { ${list.join(', ')} }`,
    '',
  ].join('\n')
}

function startFrom(file: string): string {
  const up = relative(dirname(file), 'start.js')
  return up.startsWith('.') ? up : `./${up}`
}

function namesOf(file: string, outputs: Outputs): readonly string[] {
  return outputs[file]?.exports ?? []
}

/** One that no other file's export has. */
function longName(file: string, name: string): string {
  return `${file.replaceAll(/\W/g, '_')}__${name}`
}
