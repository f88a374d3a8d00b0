import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fs } from '@dsh/harness/plugins/fs'
import { search } from '@dsh/harness/plugins/search'
import { subprocess } from '@dsh/harness/plugins/subprocess'
import { createHarness } from '@dsh/harness/testing'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { report } from '../figure.ts'
import { medianOf } from '../measure.ts'

const [runs, warmups] = [31, 10]
const repository = new URL('../../', import.meta.url).pathname
const execute = promisify(execFile)

/** The same program that the tools use: it is the harness's dependency. */
const harness = createRequire(new URL('../../packages/harness/package.json', import.meta.url))
const { rgPath } = (await import(harness.resolve('@vscode/ripgrep'))) as { readonly rgPath: string }

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-bench-')))
const path = join(dir, 'file.ts')
const lines = Array.from({ length: 5000 }, (_, index) => `  const value${index} = compute(${index}, "text")`)
writeFileSync(path, lines.join('\n'))

const { ctx } = await createHarness([])
await ctx.plugin(fs, { cwd: dir })
await ctx.plugin(subprocess, { env: process.env })
await ctx.plugin(search)
let calls = 0
const agentIn = async (cwd: string) =>
  (await ctx.agents.create({ sessionId: SessionId(cwd), meta: { cwd } })).agent
const agents = { files: await agentIn(dir), repository: await agentIn(repository) }

async function call(name: string, args: JsonValue, agent = agents.repository): Promise<void> {
  const signal = new AbortController().signal
  const input = { callId: CallId(`c${++calls}`), name, arguments: args, signal, agent }
  const result = await ctx.tools.execute(input)
  if (result.isError) throw new Error(result.error.message)
}

/** Both in turn, so that a busy moment meets both alike. */
async function compare(
  name: string,
  ours: () => Promise<unknown>,
  bare: () => Promise<unknown>,
  what: string,
): Promise<void> {
  const [tool, floor]: [number[], number[]] = [[], []]
  for (let run = -warmups; run < runs; run++) {
    for (const [job, times] of [
      [ours, tool],
      [bare, floor],
    ] as const) {
      const before = performance.now()
      await job()
      if (run >= 0) times.push(performance.now() - before)
    }
  }
  report({ name: `${name}: the tool call`, value: medianOf(tool), unit: 'ms', of: 'wall' })
  report({ name: what, value: medianOf(floor), unit: 'ms', of: 'wall' })
  report({ name: `${name} against that`, value: medianOf(tool) / medianOf(floor), unit: '×', of: 'ratio' })
}

await compare(
  'read 2,000 of 5,000 lines',
  () => call('read', { file_path: path }, agents.files),
  () => readFile(path, 'utf8'),
  'bare readFile',
)

let edits = 0
/** Content, sync, name: what no way of replacing a file whole can do without. */
async function replaceBare(): Promise<void> {
  const text = readFileSync(path, 'utf8').replace('value2500 ', 'value2500 ')
  const file = await open(`${path}.new`, 'w')
  await file.writeFile(text)
  await file.sync()
  await file.close()
  await rename(`${path}.new`, `${path}.copy`)
}
await compare(
  'edit of a 5,000-line file',
  () => {
    const [from, to] =
      edits++ % 2 === 0 ? ['compute(2500,', 'computed(2500,'] : ['computed(2500,', 'compute(2500,']
    return call('edit', { file_path: path, old_string: from, new_string: to }, agents.files)
  },
  replaceBare,
  'bare read, write, fsync, rename',
)

const visible = ['--no-config', '--hidden', '--glob=!.git']
const rg = (...args: string[]) =>
  execute(rgPath, [...visible, ...args], { cwd: repository, maxBuffer: 2 ** 26 })
await compare(
  'grep over this repository',
  () => call('grep', { pattern: 'createHarness\\(' }),
  () => rg('--line-number', '--regexp=createHarness\\(', '--', './'),
  'bare rg',
)
await compare(
  'glob over this repository',
  () => call('glob', { pattern: '**/*.test.ts' }),
  () => rg('--files', '--glob=*.test.ts', '--', './'),
  'bare rg --files',
)

await ctx.dispose()
rmSync(dir, { recursive: true })
