import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { codeIn, readTables } from './markdown-tables.ts'
import { readSource, readSourceTree } from './source-tree.ts'
import type { SourceFile, SourceTree } from './source-tree.ts'

const root = new URL('../../../../', import.meta.url).pathname
const plugins = 'packages/harness/src/plugins/'
const sources = readSourceTree(root)

/** The row of a folder: its plugin, undefined for a library, what it provides, and who mounts it. */
interface Folder {
  readonly plugin: string | undefined
  readonly services: readonly string[]
  readonly mountedBy: readonly string[]
}

const rows = readTables(readFileSync(`${root}docs/reference/seed-map.md`, 'utf8'))
const folders: ReadonlyMap<string, Folder> = new Map(
  rows
    .filter(({ section }) => section === 'Plugin folders')
    .map(({ cells }) => {
      const [folder = ''] = codeIn(cells['Folder'] ?? '')
      const services = codeIn(cells['Services'] ?? '')
      return [
        folder,
        { plugin: codeIn(cells['Plugin'] ?? '')[0], services, mountedBy: codeIn(cells['With'] ?? '') },
      ]
    }),
)

function filesOf(folder: string, tree: SourceTree = sources): SourceFile[] {
  return [...tree].filter(([path]) => path.startsWith(`${plugins}${folder}/`)).map(([, file]) => file)
}

/** Imports of another plugin's front door by a plugin that injects nothing of it; `events.ts` is free. */
function undeclaredImports(tree: SourceTree): string[] {
  return [...folders.keys()].flatMap(folder => {
    const files = filesOf(folder, tree)
    const injected = new Set(files.flatMap(({ injects }) => [...injects]))
    const doors = files.flatMap(({ imports }) => imports.map(({ from }) => from))
    const others = new Set(doors.flatMap(from => /plugins\/([^/]+)\/index\.ts$/.exec(from)?.[1] ?? []))
    return [...others]
      .filter(other => other !== folder)
      .filter(other => {
        const { services = [], mountedBy = [] } = folders.get(other) ?? {}
        return !mountedBy.includes(folder) && !services.some(key => injected.has(key))
      })
      .map(other => `${folder} imports ${other}`)
  })
}

test('every plugin folder has a row in the seed map, and every row a folder', () => {
  const present = readdirSync(`${root}${plugins}`).sort()
  assert.deepEqual([...folders.keys()].sort(), present)
})

test('a folder is named as the plugin it exports, and a library exports none', async () => {
  for (const [folder, { plugin }] of folders) {
    const module = (await import(`@dsh/harness/plugins/${folder}`)) as Record<string, unknown>
    const names = Object.values(module).flatMap(nameOfPlugin)
    if (plugin === undefined) assert.deepEqual(names, [], `${folder} is a library`)
    else {
      assert.equal(plugin, folder)
      assert.ok(names.includes(folder), `${folder} exports ${names.join(', ') || 'no plugin'}`)
    }
  }
})

test('parts of a plugin have names of their own', async () => {
  const names: string[] = []
  for (const folder of folders.keys()) {
    const module = (await import(`@dsh/harness/plugins/${folder}`)) as Record<string, unknown>
    names.push(...Object.values(module).flatMap(nameOfPlugin))
  }
  assert.deepEqual(names, [...new Set(names)])
})

test('a plugin provides the services of its row', () => {
  for (const [folder, { services }] of folders) {
    const provided = new Set(filesOf(folder).flatMap(({ provides }) => [...provides]))
    assert.deepEqual([...provided].sort(), [...services].sort(), folder)
  }
})

test('a plugin that imports another injects a service of it', () => {
  assert.deepEqual(undeclaredImports(sources), [])
})

test('an import without an injected service is found, one of events is free', () => {
  const path = `${plugins}retry/log.ts`
  const planted = (text: string): string[] =>
    undeclaredImports(new Map([...sources, [path, readSource(text, path)]]))
  assert.deepEqual(planted(`import { fs } from '../fs/index.ts'`), ['retry imports fs'])
  assert.deepEqual(planted(`import type { ApprovalPolicy } from '../approval/events.ts'`), [])
  assert.deepEqual(planted(`import { fs } from '../fs/index.ts'\nexport const more = { inject: ['fs'] }`), [])
})

/** The name of what is mounted as a plugin: an object with `apply`. A fold has one too, and the types it applies. */
function nameOfPlugin(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { apply, name } = value as { readonly apply?: unknown; readonly name?: unknown }
  const isPlugin = typeof apply === 'function' && !('types' in value)
  return isPlugin && typeof name === 'string' ? [name] : []
}
