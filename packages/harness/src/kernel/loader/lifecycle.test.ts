import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Context } from '../index.ts'
import { Composition, Loader, parseRows } from './index.ts'
import type { LoaderOptions, RowPatch } from './index.ts'

function setup(plugins: Readonly<Record<string, object>>, options: LoaderOptions = {}) {
  const ctx = new Context()
  const errors: string[] = []
  ctx.on('internal/error', (error, fiber, where) => {
    errors.push(`${fiber.name} ${where}: ${(error as Error).message}`)
  })
  const loader = new Loader(ctx, { builtin: name => plugins[name], ...options })
  return { ctx, loader, errors }
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'dsh-lifecycle-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

async function install(dir: string, name: string, manifest: object, text: string): Promise<string> {
  const place = path.join(dir, 'node_modules', name)
  await mkdir(place, { recursive: true })
  await writeFile(
    path.join(place, 'package.json'),
    JSON.stringify({ name, type: 'module', exports: './index.js', ...manifest }),
  )
  const file = path.join(place, 'index.js')
  await writeFile(file, text)
  return file
}

const failNow = (error: unknown): never => assert.fail(String(error))
const rows = (...list: object[]): RowPatch[] => parseRows(list, undefined)
const quiet = { name: 'quiet', apply: () => {} }
/** Gives the file system and the module loader, which no fake clock drives, their turn. */
const settle = (): Promise<void> => new Promise(setImmediate)

async function advance(t: TestContext, ms: number, until: () => boolean): Promise<void> {
  while (!until()) {
    t.mock.timers.tick(ms)
    await settle()
  }
}

test('what the drain gives is called when the change is over, also when it was refused', async () => {
  const log: string[] = []
  const loud = {
    name: 'loud',
    apply: (_ctx: Context, config: { fail?: boolean }) => {
      log.push('apply')
      if (config.fail === true) throw new Error('no')
    },
  }
  const drain = async (): Promise<() => void> => {
    log.push('drain')
    return () => void log.push('release')
  }
  const { loader } = setup({ loud, quiet }, { drain })
  await loader.apply([rows({ name: 'quiet' })])
  assert.deepEqual(log, [])
  await loader.apply([rows({ name: 'quiet' }, { name: 'loud', config: {} })])
  await assert.rejects(loader.apply([rows({ name: 'loud', config: { fail: true } })]))
  assert.deepEqual(log, ['drain', 'apply', 'release', 'drain', 'apply', 'apply', 'release'])
})

test('a change that the guard refuses is refused at once, not when its turn comes', async () => {
  const gate = Promise.withResolvers<void>()
  let refused = false
  const guard = (): void => {
    if (refused) throw new Error('busy')
  }
  const { loader } = setup({ quiet }, { guard, drain: () => gate.promise })
  await loader.apply([rows({ name: 'quiet' })])
  const waiting = loader.apply([])
  refused = true
  await assert.rejects(loader.apply([]), /busy/)
  gate.resolve()
  await waiting
  assert.deepEqual(loader.report(), [])
})

test('a plugin that waits for an update of its own file inside its set-up is refused instead of standing in line behind itself', async t => {
  const dir = await folder(t)
  const file = path.join(dir, 'dsh.yml')
  await writeFile(file, '- {name: eager}\n')
  const codes: string[] = []
  const eager = {
    name: 'eager',
    apply: async () => {
      await composition.update(file, 'eager', { config: { x: 1 } }).catch(error => codes.push(error.code))
      await composition.refresh().catch(error => codes.push(error.code))
    },
  }
  const { ctx, loader } = setup({ eager })
  const composition = new Composition(ctx, loader, { base: [], files: [file], report: failNow })
  await composition.start()
  assert.deepEqual(codes, ['NESTED_CHANGE', 'NESTED_CHANGE'])
  assert.equal(await readFile(file, 'utf8'), '- {name: eager}\n')
})

test('a plugin whose set-up never ends holds nobody up, and its row says so until it ends', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const gate = Promise.withResolvers<void>()
  const slow = { name: 'slow', apply: () => gate.promise }
  const { loader } = setup({ slow, quiet })
  let started = false
  const start = loader.apply([rows({ name: 'slow' }, { name: 'quiet' })]).then(() => (started = true))
  await advance(t, 5000, () => started)
  await start
  assert.deepEqual(loader.report(), [
    { id: 'slow', name: 'slow', state: 'loading', reason: 'its set-up has not ended' },
    { id: 'quiet', name: 'quiet', state: 'active' },
  ])
  gate.resolve()
  await settle()
  assert.equal(loader.report()[0]?.state, 'active')
})

test('a plugin whose disposal never ends is left behind with a word, and others change', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const stuck = { name: 'stuck', apply: () => () => new Promise<void>(() => {}) }
  const { loader, errors } = setup({ stuck, quiet }, { settleMs: 2000 })
  await loader.apply([rows({ name: 'stuck' })])
  let changed = false
  const change = loader.apply([rows({ name: 'quiet' })]).then(() => (changed = true))
  await advance(t, 1000, () => changed)
  await change
  assert.deepEqual(loader.report(), [{ id: 'quiet', name: 'quiet', state: 'active' }])
  assert.deepEqual(errors, [
    'stuck loader: plugin "stuck" did not end within 2000 ms; the change went on without it',
  ])
})

test('a change is over when all that it set going has settled, also what restarts after the last one', async () => {
  const log: string[] = []
  const step = (): Promise<void> => new Promise(setImmediate)
  const user = {
    name: 'user',
    inject: { optional: ['late'] },
    apply: async (ctx: Context) => {
      await step()
      log.push(`user ${ctx.get('late' as never) === undefined ? 'alone' : 'with late'}`)
    },
  }
  const late = {
    name: 'late',
    apply: async (ctx: Context) => {
      await step()
      await step()
      ctx.provide('late' as never, {} as never)
    },
  }
  const { loader } = setup({ user, late })
  await loader.apply([rows({ name: 'user' })])
  await loader.apply([rows({ name: 'user' }, { name: 'late' })])
  assert.deepEqual(log, ['user alone', 'user with late'])
})

test('a file that is touched while it is first read is read once, and its plugins run once', async t => {
  const dir = await folder(t)
  const yaml = path.join(dir, 'dsh.yml')
  await writeFile(yaml, '- {name: once}\n')
  const log: string[] = []
  const once = { name: 'once', apply: async () => void log.push('up') }
  const { ctx, loader } = setup({ once })
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  composition.watch()
  const start = composition.start()
  for (let second = 1; second <= 50; second++) await utimes(yaml, second, second)
  await Promise.all([start, composition.refresh(), composition.refresh()])
  assert.deepEqual(log, ['up'])
  await ctx.dispose()
})

test('a plugin that ends a child of its own leaves its row and the file as they are', async t => {
  const dir = await folder(t)
  const yaml = path.join(dir, 'dsh.yml')
  const text = '- {name: parent} # mine\n'
  await writeFile(yaml, text)
  const parent = {
    name: 'parent',
    apply: (ctx: Context) => ctx.plugin({ name: 'child', apply: () => {} }).dispose(),
  }
  const { ctx, loader } = setup({ parent })
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  await composition.start()
  await composition.refresh()
  assert.deepEqual(loader.report(), [{ id: 'parent', name: 'parent', state: 'active' }])
  assert.equal(await readFile(yaml, 'utf8'), text)
})

test('a changed file of an installed plugin asks for a restart once, and the plugin runs on', async t => {
  const dir = await folder(t)
  const applied: string[] = []
  Object.assign(globalThis, { dshApplied: applied })
  t.after(() => Reflect.deleteProperty(globalThis, 'dshApplied'))
  const main = `
    import { part } from "./part.js"
    export default { name: "installed", apply() { globalThis.dshApplied.push(part()) } }`
  const file = await install(dir, 'installed', {}, main)
  const part = path.join(path.dirname(file), 'part.js')
  await writeFile(part, 'import "other"\nexport const part = () => "part"')
  const other = await install(dir, 'other', {}, 'export const other = 1')
  const { loader, errors } = setup({})
  await loader.apply([parseRows([{ name: 'installed' }], pathToFileURL(path.join(dir, 'dsh.yml')).href)])
  assert.deepEqual(loader.report(), [{ id: 'installed', name: 'installed', state: 'active' }])
  assert.deepEqual(loader.modules.paths().toSorted(), [file, part])
  assert.deepEqual(await loader.reload([pathToFileURL(other).href]), [])
  assert.deepEqual(errors, [])
  assert.deepEqual(await loader.reload([pathToFileURL(part).href]), [])
  assert.deepEqual(await loader.reload([pathToFileURL(file).href]), [])
  assert.deepEqual(errors, [
    'root loader: the files of plugin "installed" were changed; it runs as before until a restart',
  ])
  assert.deepEqual(applied, ['part'])
  assert.deepEqual(loader.report(), [
    {
      id: 'installed',
      name: 'installed',
      state: 'active',
      note: 'its files were changed; restart needed',
    },
  ])
})

test('a plugin that is for another host is not run, and its row names both versions', async t => {
  const dir = await folder(t)
  const dead = 'globalThis.dshRan = true\nexport default { apply() {} }'
  await install(dir, 'newer', { peerDependencies: { '@dsh/harness': '>=9' } }, dead)
  await install(dir, 'node-of-tomorrow', { engines: { node: '>=99', npm: '>=99' } }, dead)
  const fits = { peerDependencies: { '@dsh/harness': '^0.1.0', unknown: '>=9' } }
  await install(dir, 'fits', fits, 'export default { name: "fits", apply() {} }')
  const { loader } = setup({}, { versions: { '@dsh/harness': '0.1.0', node: '24.1.0' } })
  const names = ['newer', 'node-of-tomorrow', 'fits'].map(name => ({ name }))
  await loader.apply([parseRows(names, pathToFileURL(path.join(dir, 'dsh.yml')).href)])
  assert.deepEqual(
    loader.report().map(({ id, state, reason }) => [id, state, reason]),
    [
      ['newer', 'unloaded', 'plugin "newer" cannot be loaded: it is for @dsh/harness >=9, and this is 0.1.0'],
      [
        'node-of-tomorrow',
        'unloaded',
        'plugin "node-of-tomorrow" cannot be loaded: it is for node >=99, and this is 24.1.0',
      ],
      ['fits', 'active', undefined],
    ],
  )
  assert.equal('dshRan' in globalThis, false)
})

test('a package without its built file says which file is missing, and starts once it is there', async t => {
  const dir = await folder(t)
  const file = await install(dir, 'unbuilt', { exports: './dist/index.js' }, '')
  const yaml = path.join(dir, 'dsh.yml')
  await writeFile(yaml, '- {name: unbuilt}\n- {name: quiet}\n')
  const { ctx, loader } = setup({ quiet })
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  await composition.start()
  const [broken, healthy] = loader.report()
  assert.equal(broken?.state, 'unloaded')
  assert.match(broken?.reason ?? '', /^plugin "unbuilt" cannot be loaded: .*unbuilt\/dist\/index\.js/)
  assert.equal(healthy?.state, 'active')
  await mkdir(path.join(path.dirname(file), 'dist'))
  await writeFile(path.join(path.dirname(file), 'dist/index.js'), 'export default { apply() {} }')
  await composition.refresh()
  assert.equal(loader.report()[0]?.state, 'active')
})

test('a plugin that cannot run is switched off or taken out without its help', async t => {
  const dir = await folder(t)
  await writeFile(path.join(dir, 'hangs.ts'), 'await new Promise(() => {})')
  const yaml = path.join(dir, 'dsh.yml')
  await writeFile(yaml, '- {name: ./hangs.ts}\n- {name: absent}\n- {name: quiet}\n')
  const { ctx, loader } = setup({ quiet }, { timeoutMs: 20 })
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  await composition.start()
  const states = (): [string, string][] => loader.report().map(({ id, state }) => [id, state])
  assert.deepEqual(states(), [
    ['hangs', 'unloaded'],
    ['absent', 'unloaded'],
    ['quiet', 'active'],
  ])
  await composition.update(yaml, 'hangs', { disabled: true })
  await writeFile(yaml, '- {name: quiet}\n')
  await composition.refresh()
  assert.deepEqual(states(), [['quiet', 'active']])
})

test('a running file that is emptied changes nothing, and one that says [] takes its plugins away', async t => {
  const dir = await folder(t)
  const yaml = path.join(dir, 'dsh.yml')
  await writeFile(yaml, '- {name: quiet}\n')
  const { ctx, loader } = setup({ quiet })
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  await composition.start()
  for (const blank of ['', '\n', '# only words\n', '---\n']) {
    await writeFile(yaml, blank)
    await assert.rejects(composition.refresh(), { code: 'INVALID_COMPOSITION' })
  }
  assert.equal(loader.report().length, 1)
  await writeFile(yaml, '[] # none\n')
  await composition.refresh()
  assert.deepEqual(loader.report(), [])
})

test('an installed plugin that could not be loaded is loaded again when its file is mended', async t => {
  const dir = await folder(t)
  const file = await install(dir, 'mended', {}, 'throw new Error("half built")')
  const { loader } = setup({})
  await loader.apply([parseRows([{ name: 'mended' }], pathToFileURL(path.join(dir, 'dsh.yml')).href)])
  assert.match(loader.report()[0]?.reason ?? '', /half built/)
  await writeFile(file, 'export default { apply() {} }')
  await loader.reload([pathToFileURL(file).href])
  assert.deepEqual(loader.report(), [{ id: 'mended', name: 'mended', state: 'active' }])
})

test('an instance in a row of the program reaches the plugin as it is, whatever layers and references stand around it', async () => {
  class Clock {
    readonly #now = 7
    now(): number {
      return this.#now
    }
  }
  const seen: unknown[] = []
  const reader = { name: 'reader', apply: (_ctx: Context, config: unknown) => void seen.push(config) }
  const clock = new Clock()
  const { loader } = setup({ reader }, { env: { ZONE: 'UTC' } })
  const base = rows({ name: 'reader', config: { clock, list: [clock], zone: '${env:ZONE}' } })
  await loader.apply([base, rows({ id: 'reader', config: { more: 1 } })])
  const [config] = seen as [{ clock: Clock; list: Clock[]; zone: string; more: number }]
  assert.equal(config.clock, clock)
  assert.equal(config.list[0], clock)
  assert.equal(config.clock.now(), 7)
  assert.deepEqual([config.zone, config.more], ['UTC', 1])
})

test('the module of a row that is switched off is not even loaded', async t => {
  const dir = await folder(t)
  await writeFile(path.join(dir, 'off.ts'), 'globalThis.dshLoaded = true\nexport const off = { apply() {} }')
  const { loader } = setup({})
  const base = pathToFileURL(path.join(dir, 'dsh.yml')).href
  await loader.apply([parseRows([{ name: './off.ts', disabled: true }], base)])
  assert.equal('dshLoaded' in globalThis, false)
  assert.deepEqual(loader.modules.paths(), [])
})

test('the watcher reloads the plugin whose file was saved, and none beside it', async t => {
  const dir = await folder(t)
  const yaml = path.join(dir, 'dsh.yml')
  for (const name of ['left', 'right'])
    await writeFile(path.join(dir, `${name}.ts`), `export const it = { name: '${name} 1', apply() {} }`)
  await writeFile(yaml, '- {name: ./left.ts}\n- {name: ./right.ts}\n')
  const { ctx, loader } = setup({})
  const composition = new Composition(ctx, loader, { base: [], files: [yaml], report: failNow })
  await composition.start()
  composition.watch()
  const seen: string[] = []
  ctx.on('internal/fiber', ({ name, state }) => {
    if (state === 'active') seen.push(name)
  })
  // What is saved before the watcher has looked for the first time counts as unchanged.
  for (let save = 2; seen.length === 0; save++) {
    await writeFile(path.join(dir, 'new.ts'), `export const it = { name: 'left ${save}', apply() {} }`)
    await rename(path.join(dir, 'new.ts'), path.join(dir, 'left.ts'))
    await settle()
  }
  await composition.refresh()
  for (const name of seen) assert.match(name, /^left /)
  await ctx.dispose()
})
