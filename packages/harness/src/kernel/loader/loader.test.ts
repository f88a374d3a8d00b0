import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Context } from '../index.ts'
import { Composition, compose, Loader, parseRows } from './index.ts'
import type { LoaderOptions, RowPatch } from './index.ts'

interface Probe {
  readonly log: string[]
}

/** A built-in plugin that writes down its life; config `fail` makes set-up throw. */
function probe(log: string[], name: string): object {
  return {
    name,
    apply: (_ctx: Context, config: { fail?: boolean; value?: unknown } | undefined) => {
      if (config?.fail === true) throw new Error(`${name} failed`)
      log.push(`${name} up ${JSON.stringify(config?.value)}`)
      return () => void log.push(`${name} down`)
    },
  }
}

function setup(options: LoaderOptions = {}): Probe & { ctx: Context; loader: Loader } {
  const log: string[] = []
  const ctx = new Context()
  const names = ['a', 'b', 'c', 'd', 'e']
  const builtin = (name: string): object | undefined => (names.includes(name) ? probe(log, name) : undefined)
  return { ctx, log, loader: new Loader(ctx, { builtin, ...options }) }
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'dsh-loader-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

const rows = (...list: object[]): RowPatch[] => parseRows(list, undefined)

test('rows are mounted in order and unmounted in reverse', async () => {
  const { ctx, log, loader } = setup()
  await loader.apply([rows({ name: 'a' }, { name: 'b' })])
  await ctx.dispose()
  assert.deepEqual(log, ['a up undefined', 'b up undefined', 'b down', 'a down'])
})

test('later layers change config key by key, and bring rows of their own', () => {
  const base = rows(
    { id: 'x', name: 'a', config: { keep: 1, deep: { left: 1, right: 1 }, list: [1, 2] } },
    { name: 'b' },
  )
  const over = rows(
    { id: 'x', config: { deep: { right: 2 }, list: [3] } },
    { name: 'c' },
    { id: 'b', disabled: true },
  )
  assert.deepEqual(compose([base, over]), [
    { id: 'x', name: 'a', config: { keep: 1, deep: { left: 1, right: 2 }, list: [3] } },
    { id: 'b', name: 'b', disabled: true },
    { id: 'c', name: 'c' },
  ])
})

test('a row that changes a plugin nobody brings in is off with the nearest id, and refused while running', async () => {
  const { log, loader } = setup()
  const base = rows({ id: 'alpha', name: 'a' })
  await loader.apply([base, rows({ id: 'alpa', disabled: true })])
  assert.deepEqual(log, ['a up undefined'])
  assert.deepEqual(loader.report()[1], {
    id: 'alpa',
    name: 'alpa',
    state: 'unloaded',
    reason: 'no layer brings in a plugin "alpa"; did you mean "alpha"?',
  })
  await assert.rejects(loader.apply([base, rows({ id: 'zzz', config: {} })]), {
    code: 'CHANGE_REFUSED',
    message: /no layer brings in a plugin "zzz"; give it a name/,
  })
})

test('a row that a later layer disables is never constructed', async () => {
  const { log, loader } = setup()
  await loader.apply([rows({ name: 'a', config: { fail: true } }), rows({ id: 'a', disabled: true })])
  assert.deepEqual(log, [])
  assert.deepEqual(loader.report(), [{ id: 'a', name: 'a', state: 'disabled' }])
})

test('wrong forms of a row are refused with their path', () => {
  const cases: [unknown, string][] = [
    [{}, 'top level is {}, not a list of plugins'],
    [[1], '[0] is 1, not a mapping with id or name'],
    [[{ config: {} }], '[0] has neither id nor name'],
    [[{ name: 'a', disabled: 'false' }], '[0].disabled is "false"; write true or false'],
    [[{ name: 'a', disabled: 0 }], '[0].disabled is 0; write true or false'],
    [[{ name: 'a', disabled: null }], '[0].disabled is null; write true or false'],
    [[{ name: 'a', confg: 1 }], '[0] has an unknown key "confg"; did you mean "config"?'],
    [[{ id: 'g', group: true, config: [{ name: '' }] }], '[0].config[0].name is "", not a text'],
    [[{ name: 'a' }, { name: './a.ts' }], 'top level names id "a" twice'],
    [[{ name: 'a', isolate: { fs: false } }], '[0].isolate.fs is false; write true or a label'],
  ]
  for (const [value, message] of cases)
    assert.throws(() => parseRows(value, undefined), { code: 'INVALID_ROW', message })
})

test('at the start a bad row degrades alone and says why', async () => {
  const { log, loader } = setup()
  const broken = rows({ name: 'a' }, { name: 'nope' }, { name: 'b', config: { fail: true } }, { name: 'c' })
  await loader.apply([broken])
  assert.deepEqual(log, ['a up undefined', 'c up undefined'])
  assert.deepEqual(loader.report(), [
    { id: 'a', name: 'a', state: 'active' },
    {
      id: 'nope',
      name: 'nope',
      state: 'unloaded',
      reason: 'plugin "nope" cannot be loaded: there is no built-in plugin of that name',
    },
    { id: 'b', name: 'b', state: 'failed', reason: 'b failed' },
    { id: 'c', name: 'c', state: 'active' },
  ])
})

test('a plugin that waits says for what', async () => {
  const { loader } = setup({ builtin: () => ({ name: 'w', inject: ['nothing'], apply: () => {} }) })
  await loader.apply([rows({ name: 'w' })])
  assert.deepEqual(loader.report(), [{ id: 'w', name: 'w', state: 'pending', reason: 'waits for "nothing"' }])
})

test('a change touches only the rows that changed', async () => {
  const { log, loader } = setup()
  await loader.apply([rows({ name: 'a', config: { value: 1 } }, { name: 'b' }, { name: 'c' })])
  log.length = 0
  await loader.apply([rows({ name: 'a', config: { value: 2 } }, { name: 'b' }, { name: 'd' })])
  assert.deepEqual(log, ['c down', 'a down', 'a up 2', 'd up undefined'])
})

test('equal rows change nothing', async () => {
  const { log, loader } = setup()
  const same = () =>
    rows({ name: 'a', config: { value: { deep: [1] } } }, { id: 'g', group: true, config: [{ name: 'b' }] })
  await loader.apply([same()])
  log.length = 0
  await loader.apply([same()])
  assert.deepEqual(log, [])
})

test('a change with one failing plugin out of five leaves the old ones running', async () => {
  const { log, loader } = setup()
  const before = rows({ name: 'a', config: { value: 1 } }, { name: 'b' })
  await loader.apply([before])
  log.length = 0
  const after = rows(
    { name: 'a', config: { value: 2 } },
    { name: 'c' },
    { name: 'd', config: { fail: true } },
    { name: 'e' },
  )
  await assert.rejects(loader.apply([after]), { code: 'CHANGE_REFUSED', message: /"d": d failed/ })
  assert.deepEqual(
    loader.report().map(row => [row.id, row.state]),
    [
      ['a', 'active'],
      ['b', 'active'],
    ],
  )
  assert.deepEqual(log.slice(-2), ['a up 1', 'b up undefined'])
  await loader.apply([rows({ name: 'c' })])
  assert.deepEqual(loader.report(), [{ id: 'c', name: 'c', state: 'active' }])
})

test('a change that names a missing plugin changes nothing at all', async () => {
  const { log, loader } = setup()
  await loader.apply([rows({ name: 'a' })])
  log.length = 0
  await assert.rejects(loader.apply([rows({ name: 'b' }, { name: 'nope' })]), { code: 'CHANGE_REFUSED' })
  assert.deepEqual(log, [])
})

test('a plugin that was down before a change does not make the change fail', async () => {
  const { loader } = setup()
  await loader.apply([rows({ name: 'a', config: { fail: true } })])
  await loader.apply([rows({ name: 'a', config: { fail: true } }, { name: 'b' })])
  assert.equal(loader.report()[1]?.state, 'active')
})

test('changes are serial, and none begins before the drain is over', async () => {
  const order: string[] = []
  const { loader } = setup({ drain: async () => void order.push('drained') })
  const first = loader.apply([rows({ name: 'a' })]).then(() => order.push('first'))
  const second = loader.apply([rows({ name: 'b' })]).then(() => order.push('second'))
  await Promise.all([first, second])
  assert.deepEqual(order, ['first', 'drained', 'second'])
})

test('a plugin that waits for a change inside its set-up is refused, and a timer it made is not', async () => {
  const outcome: string[] = []
  const later = Promise.withResolvers<void>()
  const nested = {
    name: 'nested',
    apply: async (ctx: Context) => {
      await loader.apply([]).catch((error: { code: string }) => outcome.push(error.code))
      ctx.setTimeout(
        () =>
          void loader
            .reload([])
            .then(() => outcome.push('later'))
            .then(() => later.resolve()),
        1,
      )
    },
  }
  const { loader } = setup({ builtin: () => nested })
  await loader.apply([rows({ name: 'nested' })])
  await later.promise
  assert.deepEqual(outcome, ['NESTED_CHANGE', 'later'])
})

test('environment references are read, escaped ones kept, unset ones refused with the path', async () => {
  const { log, loader } = setup({ env: { HOST: 'h', TRICKY: '${env:HOST}' } })
  await loader.apply([
    rows({ name: 'a', config: { value: ['http://${env:HOST}/', '$${env:HOST}', '${env:TRICKY}'] } }),
  ])
  assert.deepEqual(log, ['a up ["http://h/","${env:HOST}","${env:HOST}"]'])
  await assert.rejects(loader.apply([rows({ name: 'a', config: { value: '${env:NOPE}' } })]), {
    code: 'CHANGE_REFUSED',
    message: /config\.value needs the environment variable "NOPE", which is not set/,
  })
})

test('a group is one unit: its rows run below it and end with it', async () => {
  const { log, loader } = setup()
  await loader.apply([rows({ id: 'g', group: true, config: [{ name: 'a' }, { name: 'b' }] })])
  await loader.apply([rows({ id: 'g', disabled: true, group: true, config: [{ name: 'a' }, { name: 'b' }] })])
  assert.deepEqual(log, ['a up undefined', 'b up undefined', 'b down', 'a down'])
})

test('an isolated row sees the service of its own realm', async () => {
  const seen: unknown[] = []
  const provider = (value: string) => ({
    name: value,
    apply: (ctx: Context) => void ctx.provide('clock', { now: value } as never),
  })
  const plugins: Record<string, object> = {
    outer: provider('outer'),
    inner: provider('inner'),
    reader: { name: 'reader', inject: ['clock'], apply: (ctx: Context) => void seen.push(ctx.get('clock')) },
  }
  const { loader } = setup({ builtin: name => plugins[name] })
  const isolated = {
    id: 'g',
    group: true,
    isolate: { clock: true },
    config: [{ name: 'inner' }, { name: 'reader' }],
  }
  await loader.apply([rows({ name: 'outer' }, isolated)])
  assert.deepEqual(seen, [{ now: 'inner' }])
})

test('disposing a plugin from inside another leaves the rows as they are', async () => {
  const child = { name: 'child', apply: () => {} }
  const parent = { name: 'parent', apply: (ctx: Context) => ctx.plugin(child).dispose() }
  const { loader } = setup({ builtin: () => parent })
  await loader.apply([rows({ name: 'parent' })])
  assert.deepEqual(loader.report(), [{ id: 'parent', name: 'parent', state: 'active' }])
})

test('a module is one plugin in whatever form it exports it, and never a guess', async t => {
  const dir = await folder(t)
  const write = (name: string, text: string): Promise<void> => writeFile(path.join(dir, name), text)
  await write('default.ts', 'export default { name: "d", inject: ["x"], apply() {} }')
  await write('named.ts', 'export const tidy = { name: "n", inject: ["x"], apply() {} }')
  await write('module.ts', 'export const name = "m"\nexport const inject = ["x"]\nexport function apply() {}')
  await write('both.ts', 'export default function plugin() {}\nexport const inject = ["x"]')
  await write('two.ts', 'export const one = { apply() {} }\nexport const other = { apply() {} }')
  await write('none.ts', 'export const answer = 42')
  await write('broken.ts', 'export const = 1')
  await write('hangs.ts', 'await new Promise(() => {})')
  const { loader } = setup({ builtin: () => undefined, timeoutMs: 50 })
  const names = ['default', 'named', 'module', 'both', 'two', 'none', 'broken', 'hangs', 'absent'].map(
    name => ({ name: `./${name}.ts` }),
  )
  await loader.apply([parseRows(names, pathToFileURL(path.join(dir, 'dsh.yml')).href)])
  const report = Object.fromEntries(loader.report().map(row => [row.id, row.reason ?? row.state]))
  for (const whole of ['default', 'named', 'module']) assert.equal(report[whole], 'waits for "x"')
  assert.match(
    report['both'] ?? '',
    /exports a default plugin and also "inject"; put these on the default export/,
  )
  assert.match(report['two'] ?? '', /exports several plugins \("one", "other"\); make one the default/)
  assert.match(report['none'] ?? '', /exports no plugin/)
  assert.match(report['broken'] ?? '', /cannot be loaded/)
  assert.match(report['hangs'] ?? '', /did not load within 50 ms/)
  assert.match(report['absent'] ?? '', /Cannot find module/)
})

test('a changed file is loaded again with those that import it, and a broken one keeps the old', async t => {
  const dir = await folder(t)
  const file = path.join(dir, 'hello.ts')
  const part = path.join(dir, 'part.ts')
  const seen: string[] = []
  Object.assign(globalThis, { dshSeen: seen })
  t.after(() => Reflect.deleteProperty(globalThis, 'dshSeen'))
  await writeFile(part, 'export const word = "one"')
  await writeFile(
    file,
    'import { word } from "./part.ts"\nexport const hello = { name: "hello", apply() { globalThis.dshSeen.push(word) } }',
  )
  const { log, loader } = setup()
  await loader.apply([
    [
      ...parseRows([{ name: './hello.ts' }], pathToFileURL(path.join(dir, 'dsh.yml')).href),
      ...rows({ name: 'a' }),
    ],
  ])
  await writeFile(part, 'export const word = "two"')
  assert.deepEqual(await loader.reload([pathToFileURL(part).href]), ['hello'])
  await writeFile(part, 'export const word = ')
  await assert.rejects(loader.reload([pathToFileURL(part).href]), { code: 'UNLOADABLE_PLUGIN' })
  assert.equal(loader.report()[0]?.state, 'active')
  await writeFile(part, 'export const word = "three"')
  await loader.reload([pathToFileURL(part).href])
  assert.deepEqual(seen, ['one', 'two', 'three'])
  assert.deepEqual(log, ['a up undefined'])
})

test('a new version that fails in set-up gives way to the old module', async t => {
  const dir = await folder(t)
  const file = path.join(dir, 'hello.ts')
  const seen: string[] = []
  Object.assign(globalThis, { dshSeen: seen })
  t.after(() => Reflect.deleteProperty(globalThis, 'dshSeen'))
  await writeFile(file, 'export const hello = { name: "hello", apply() { globalThis.dshSeen.push("old") } }')
  const { loader } = setup()
  await loader.apply([parseRows([{ name: './hello.ts' }], pathToFileURL(path.join(dir, 'dsh.yml')).href)])
  await writeFile(
    file,
    'export const hello = { name: "hello", apply() { throw new Error("new one fails") } }',
  )
  await assert.rejects(loader.reload([pathToFileURL(file).href]), {
    code: 'CHANGE_REFUSED',
    message: /new one fails/,
  })
  assert.deepEqual(seen, ['old', 'old'])
  assert.equal(loader.report()[0]?.state, 'active')
})

async function composed(t: TestContext, text: string) {
  const dir = await folder(t)
  const file = path.join(dir, 'dsh.yml')
  if (text !== '') await writeFile(file, text)
  const problems: string[] = []
  const base = setup()
  const report = (error: unknown): void => void problems.push((error as Error).message)
  const composition = new Composition(base.ctx, base.loader, {
    base: rows({ name: 'a' }),
    files: [file],
    report,
  })
  return { ...base, dir, file, composition, problems }
}

test('a file that is no YAML is left out at the start with line and column', async t => {
  const { composition, problems, log } = await composed(t, '- id: a\n  config: {x: [1\n')
  await composition.start()
  assert.deepEqual(log, ['a up undefined'])
  assert.equal(problems.length, 1)
  assert.match(problems[0] ?? '', /dsh\.yml: .* at line \d+, column \d+/)
})

test('a tag that would run code is refused, not read as text', async t => {
  const { composition, problems } = await composed(t, '- id: a\n  disabled: !!js false\n')
  await composition.start()
  assert.match(problems[0] ?? '', /Unresolved tag/)
})

test('a byte order mark and a missing file change nothing; a folder in its place is reported', async t => {
  const marked = await composed(t, '\uFEFF- {name: b}\n')
  await marked.composition.start()
  assert.deepEqual(marked.log, ['a up undefined', 'b up undefined'])
  const missing = await composed(t, '')
  await missing.composition.start()
  assert.deepEqual(missing.problems, [])
  const blocked = await composed(t, '')
  await mkdir(blocked.file)
  await blocked.composition.start()
  assert.match(blocked.problems[0] ?? '', /EISDIR/)
})

test('while running, a broken, empty or deleted file keeps the old plugins, and the next good one applies', async t => {
  const { composition, file, log } = await composed(t, '- {name: b, config: {value: 1}}\n')
  await composition.start()
  log.length = 0
  for (const text of ['- {name: b', '', '- {name: b, config: {fail: true}}\n', '- {name: nope}\n']) {
    await writeFile(file, text)
    await assert.rejects(composition.refresh())
  }
  await rm(file)
  await assert.rejects(composition.refresh(), { code: 'INVALID_COMPOSITION', message: /is gone or empty/ })
  log.length = 0
  await writeFile(file, '- {name: b, config: {value: 2}}\n')
  await composition.refresh()
  assert.deepEqual(log, ['b down', 'b up 2'])
})

test('a change of comments alone changes nothing', async t => {
  const { composition, file, log } = await composed(t, '- {name: b}\n')
  await composition.start()
  log.length = 0
  await writeFile(file, '# a word\n- name: b # another\n')
  await composition.refresh()
  assert.deepEqual(log, [])
})

test('three quick changes apply the last one once', async t => {
  const { composition, file, log } = await composed(t, '- {name: b, config: {value: bar}}\n')
  await composition.start()
  log.length = 0
  const refreshes: Promise<void>[] = []
  for (const value of ['baz', 'qux', 'end']) {
    await writeFile(file, `- {name: b, config: {value: ${value}}}\n`)
    // A refresh may meet the file half saved; it changes nothing then.
    refreshes.push(composition.refresh().catch(() => {}))
  }
  await Promise.all(refreshes)
  assert.equal(log.at(-1), 'b up "end"')
  assert.equal(log.filter(line => line === 'b up "end"').length, 1)
})

test('an update is written with comments kept, and only after the plugins took it', async t => {
  const { composition, file, log } = await composed(
    t,
    '# mine\n- name: b # the second\n  config: {value: 1, keep: 2}\n',
  )
  await composition.start()
  await composition.update(file, 'b', { config: { value: 3 } })
  await composition.update(file, 'a', { disabled: true })
  const text = await readFile(file, 'utf8')
  assert.match(text, /^# mine\n- name: b # the second\n/)
  assert.match(text, /value: 3, keep: 2/)
  assert.match(text, /- id: a\n {2}disabled: true/)
  assert.deepEqual(log.slice(-3), ['b down', 'b up 3', 'a down'])
  await assert.rejects(composition.update(file, 'b', { config: { fail: true } }), { code: 'CHANGE_REFUSED' })
  assert.equal(await readFile(file, 'utf8'), text)
})

test('updates that race a file being touched end with file, tree and plugins equal', async t => {
  const { composition, file, log } = await composed(t, '- {name: b, config: {value: 0}}\n')
  await composition.start()
  composition.watch()
  for (let value = 1; value <= 10; value++) {
    await utimes(file, value, value)
    await Promise.all([composition.update(file, 'b', { config: { value } }), composition.refresh()])
  }
  assert.match(await readFile(file, 'utf8'), /value: 10/)
  assert.equal(log.at(-1), 'b up 10')
})

test('an included file is a group, its patches apply, and a loop is refused', async t => {
  const { composition, dir, log, problems } = await composed(
    t,
    '- {id: more, name: include, config: {path: ./more.yml, patches: [{id: c, config: {value: 2}}]}}\n',
  )
  await writeFile(path.join(dir, 'more.yml'), '- {name: c, config: {value: 1}}\n')
  await composition.start()
  assert.deepEqual(log, ['a up undefined', 'c up 2'])
  await writeFile(path.join(dir, 'more.yml'), '- {id: back, name: include, config: {path: ./dsh.yml}}\n')
  await assert.rejects(composition.refresh(), { code: 'INVALID_COMPOSITION', message: /includes itself/ })
  assert.deepEqual(problems, [])
})

test('the watcher applies a saved file without being asked', async t => {
  const { ctx, composition, file, log } = await composed(t, '- {name: b, config: {value: 1}}\n')
  await composition.start()
  composition.watch()
  await new Promise(setImmediate)
  const applied = new Promise<void>(resolve => {
    ctx.on('internal/fiber', fiber => {
      if (fiber.name === 'b' && fiber.state === 'active') resolve()
    })
  })
  await writeFile(file, '- {name: b, config: {value: 2}}\n')
  await applied
  assert.equal(log.at(-1), 'b up 2')
  await ctx.dispose()
})
