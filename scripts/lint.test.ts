import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const repo = join(import.meta.dirname, '..')
const tool = 'packages/harness/src/plugins/fs/tools/read.ts'

/** Lints a tree of these files with the root configuration; one `file rule` per finding. */
function lint(files: Record<string, string>): string[] {
  const root = mkdtempSync(join(tmpdir(), 'dsh-lint-'))
  try {
    for (const name of ['.oxlintrc.json', 'tsconfig.json']) cpSync(join(repo, name), join(root, name))
    symlinkSync(join(repo, 'node_modules'), join(root, 'node_modules'))
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), text)
    }
    const { stdout } = spawnSync(join(repo, 'node_modules/.bin/oxlint'), ['-f', 'json', 'packages'], {
      cwd: root,
      encoding: 'utf8',
    })
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string; code: string }[] }
    return diagnostics.map(({ filename, code }) => `${filename} ${code}`)
  } finally {
    rmSync(root, { recursive: true })
  }
}

test('model-visible text is not cut with slice, substring or substr', () => {
  const cuts = {
    [tool]: 'export const cut = (text: string) => text.slice(1)\n',
    'packages/harness/src/core/tools/registry.ts':
      'export const cut = (text?: string) => text?.substring(1)\n',
    'packages/harness/src/core/prompt/prompt.ts': 'export const cut = (text: string) => text["substr"](1)\n',
    'packages/cli/src/tui/render.ts': 'export const cut = (text: string) => text.slice(1)\n',
  }
  const elsewhere = {
    'packages/harness/src/kernel/text.ts': 'export const cut = (text: string) => text.slice(1)\n',
  }
  assert.deepEqual(
    lint({ ...cuts, ...elsewhere }).sort(),
    Object.keys(cuts)
      .map(file => `${file} eslint(no-restricted-properties)`)
      .sort(),
  )
})

test('only entry points and provider files touch process and console', () => {
  const text = 'import { pid } from "node:process"\nconsole.log(pid, process.env)\n'
  const findings = lint({ [tool]: text, 'packages/cli/src/main.ts': text, 'packages/cli/bin.js': text })
  assert.deepEqual(findings.sort(), [
    `${tool} eslint(no-console)`,
    `${tool} eslint(no-restricted-globals)`,
    `${tool} eslint(no-restricted-imports)`,
  ])
})

test('the type-aware rules are on, and node:test may float', () => {
  const text = `
    import { test } from 'node:test'
    const wait = async () => {}
    test('floats', () => {})
    export const start = () => { wait() }
    export const each = (list: string[]) => { list.forEach(async () => { await wait() }) }
  `
  assert.deepEqual(lint({ 'packages/harness/src/kernel/wait.ts': text }).sort(), [
    'packages/harness/src/kernel/wait.ts typescript(no-floating-promises)',
    'packages/harness/src/kernel/wait.ts typescript(no-misused-promises)',
  ])
})
