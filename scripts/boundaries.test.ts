import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { checkBoundaries } from './boundaries.ts'

/** For each rule the file that breaks it and what that file imports. `h:` stands for the harness's sources. */
const planted: Record<string, [file: string, imports: string]> = {
  'no-cycles': ['h:core/scope/a.ts', './b.ts'],
  'protocol-is-bottom': ['packages/protocol/src/y.ts', 'yaml'],
  'kernel-is-bottom': ['h:kernel/c.ts', '../core/llm/index.ts'],
  'core-floor-0': ['h:core/llm/d.ts', '../session/index.ts'],
  'core-floor-1': ['h:core/session/d.ts', '../agent/index.ts'],
  'core-floor-2': ['h:core/prompt/d.ts', '../loop/index.ts'],
  'core-floor-3': ['h:core/commands/d.ts', '../invariants/index.ts'],
  'core-below-plugins': ['h:core/tools/e.ts', '../../plugins/todo/index.ts'],
  'plugins-below-servers': ['h:plugins/todo/f.ts', '../../servers/rpc/index.ts'],
  'plugin-front-door': ['h:presets/web.ts', '../plugins/todo/f.ts'],
  'core-front-door': ['h:core/agent/g.ts', '../llm/d.ts'],
  'presets-on-top': ['h:servers/rpc/h.ts', '../../presets/web.ts'],
  'events-are-contracts': ['h:plugins/todo/events.ts', './f.ts'],
  'package-front-door': ['packages/cli/src/i.ts', '../../protocol/src/index.ts'],
  'web-is-remote': ['packages/sdk/src/j.ts', '@dsh/harness/kernel'],
  'browser-safe': ['packages/sdk/src/k.ts', 'node:fs'],
  'no-orphans': ['h:core/loop/alone.ts', ''],
  undeclared: ['h:plugins/todo/m.ts', 'not-declared'],
}

/** Sound modules for the planted ones to reach. */
const sound: Record<string, string> = {
  'h:core/scope/b.ts': './a.ts',
  'h:kernel/index.ts': 'yaml',
  'h:plugins/todo/index.ts': './events.ts',
  'packages/protocol/src/index.ts': './messages.ts',
  'packages/protocol/src/messages.ts': '',
  ...Object.fromEntries(
    ['llm', 'session', 'agent', 'loop', 'invariants'].map(name => [
      `h:core/${name}/index.ts`,
      '../scope/index.ts',
    ]),
  ),
  'h:core/scope/index.ts': '@dsh/protocol',
  'h:servers/rpc/index.ts': '../../core/scope/index.ts',
}

function setup(files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), 'dsh-boundaries-'))
  const repo = join(import.meta.dirname, '..')
  const modules = join(root, 'node_modules')
  mkdirSync(join(modules, '@dsh'), { recursive: true })
  symlinkSync(join(repo, 'node_modules/zod'), join(modules, 'zod'))
  symlinkSync(join(repo, 'node_modules/yaml'), join(modules, 'yaml'))
  cpSync(join(repo, 'package.json'), join(root, 'package.json'))
  for (const name of ['protocol', 'harness']) {
    const from = join('packages', name, 'package.json')
    mkdirSync(join(root, 'packages', name), { recursive: true })
    cpSync(join(repo, from), join(root, from))
    symlinkSync(join(root, 'packages', name), join(modules, '@dsh', name))
  }
  for (const [file, imports] of Object.entries(files)) {
    const path = join(root, file.replace('h:', 'packages/harness/src/'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, imports && `import '${imports}'\n`)
  }
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true }) }
}

test('sound modules break no rule', async () => {
  const { 'h:core/scope/b.ts': _, 'h:plugins/todo/index.ts': __, ...files } = sound
  using tree = setup({ ...files, 'h:kernel/index.ts': 'zod' })
  const { violations, unread } = await checkBoundaries(tree.root)
  assert.deepEqual({ violations, unread }, { violations: [], unread: [] })
})

test('each boundary rule fires on a planted violation', async () => {
  const files = Object.fromEntries(Object.values(planted))
  using tree = setup({ ...sound, ...files })
  const { rules, violations } = await checkBoundaries(tree.root)
  assert.deepEqual(Object.keys(planted), rules)
  for (const [rule, [file]] of Object.entries(planted)) {
    const line = `${rule}: ${file.replace('h:', 'packages/harness/src/')} → `
    assert.ok(
      violations.some(violation => violation.startsWith(line)),
      `${line}… not in\n${violations.join('\n')}`,
    )
  }
})

test('a source file that is not read is reported', async () => {
  using tree = setup({ ...sound, 'packages/harness/src/node_modules/unseen.ts': 'zod' })
  assert.deepEqual((await checkBoundaries(tree.root)).unread, ['packages/harness/src/node_modules/unseen.ts'])
})
