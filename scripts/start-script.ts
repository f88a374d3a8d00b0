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
  /** The module that runs the script, see `code-cache.ts`. */
  readonly runner: string
}

/**
 * Puts what a program loads at its start into one script with a code cache. A bundler that splits makes a file for each
 * set of entries, and to load dozens takes longer than their code does.
 *
 * Each file stays and gives what it gave, now from the script, so that whatever is loaded later meets the same modules.
 */
export async function writeStartScript({
  folder,
  outputs,
  roots,
  runner,
}: StartScriptOptions): Promise<void> {
  const files = closureOf(roots, outputs)
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
  for (const file of files) writeFileSync(join(folder, file), standIn(file, outputs))
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

async function bundleScript(folder: string, outputs: Outputs, files: readonly string[]): Promise<string> {
  const lines = files.map(file => {
    const names = namesOf(file, outputs).map(name => `${name} as ${longName(file, name)}`)
    return `export { ${names.join(', ')} } from ${JSON.stringify(`./${file}`)}`
  })
  const { outputFiles } = await build({
    stdin: { contents: lines.join('\n'), resolveDir: folder },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    packages: 'external',
    define: { 'import.meta.url': 'scriptUrl' },
    plugins: [keepLater(folder, new Set(files))],
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** What is imported later, or is no part of the script, stays a file of its own. */
function keepLater(folder: string, files: ReadonlySet<string>): Plugin {
  return {
    name: 'keep-later',
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) => {
        const file = relative(folder, join(resolveDir, path))
        return kind === 'import-statement' && files.has(file)
          ? undefined
          : { path: `./${file}`, external: true }
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
  const up = relative(dirname(file), 'start.js')
  const names = namesOf(file, outputs)
  const lines = names.map((name, index) => `const value${index} = start.${longName(file, name)}`)
  const list = names.map((name, index) => `value${index} as ${name}`)
  const from = JSON.stringify(up.startsWith('.') ? up : `./${up}`)
  return [`import { start } from ${from}`, ...lines, `export { ${list.join(', ')} }`, ''].join('\n')
}

function namesOf(file: string, outputs: Outputs): readonly string[] {
  return outputs[file]?.exports ?? []
}

/** One that no other file's export has. */
function longName(file: string, name: string): string {
  return `${file.replaceAll(/\W/g, '_')}__${name}`
}
