import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'

const kernel = pathToFileURL(join(import.meta.dirname, '../../src/kernel')).href

/** Uses what the process gives everybody instead of what its context gives it. */
const clumsy = `
  declare module '${kernel}/index.ts' {
    interface Events { 'test/poke': { mode: 'emit', args: [], result: unknown } }
  }
  export const clumsy = {
    name: 'clumsy',
    inject: ['settings'],
    apply(ctx) {
      setTimeout(() => { throw new Error('raw timer') }, 1)
      void Promise.reject(new Error('raw promise'))
      ctx.on('test/poke', () => {
        setTimeout(() => { throw new Error('timer of a listener') }, 1)
      })
      ctx.on('test/poke', async () => { throw new Error('listener') })
      ctx.setTimeout(() => { throw new Error('own timer') }, 1)
      globalThis.afterEnd = () => {
        setTimeout(() => ctx.settings.theme, 1)
        setTimeout(() => ctx.effect(() => {}), 1)
      }
    },
  }`

const quiet = `
  export const quiet = {
    name: 'quiet',
    apply(ctx) {
      ctx.on('test/poke', () => void setTimeout(() => { throw 'no error at all' }, 1))
    },
  }`

/** A host that keeps running, as long as what fails is a plugin's. */
const host = (handlers: string): string => `
  import { Context } from '${kernel}/index.ts'
  import { Loader, parseRows } from '${kernel}/loader/index.ts'

  const ctx = new Context()
  const loader = new Loader(ctx)
  const told = []
  let waiting = { count: Infinity, resolve() {} }
  const tell = line => {
    console.log(line)
    told.push(line)
    if (told.length >= waiting.count) waiting.resolve()
  }
  const toldOf = count => new Promise(resolve => {
    waiting = { count, resolve }
    if (told.length >= count) resolve()
  })
  ctx.on('internal/error', (error, fiber, where) => tell(fiber.name + ' ' + where + ': ' + error.message))
  ${handlers}
  const settings = ctx.plugin({ name: 'settings', apply: own => void own.provide('settings', { theme: 'dark' }) })
  const rows = parseRows([{ name: './clumsy.ts' }, { name: './quiet.ts' }], import.meta.url)
  await loader.apply([rows])
  ctx.emit('test/poke')
  await toldOf(6)
  await settings.dispose()
  await loader.apply([rows.slice(1)])
  afterEnd()
  await toldOf(8)
  console.log('alive')
  await ctx.dispose()
`

const handlers = `
  const caught = error => {
    if (loader.reportUncaught(error)) return
    tell('not of a plugin: ' + error)
    process.exitCode = 7
  }
  process.on('uncaughtException', caught)
  process.on('unhandledRejection', caught)
`

async function run(t: TestContext, program: string) {
  const dir = await mkdtemp(join(tmpdir(), 'dsh-host-'))
  t.after(() => rm(dir, { recursive: true }))
  await writeFile(join(dir, 'clumsy.ts'), clumsy)
  await writeFile(join(dir, 'quiet.ts'), quiet)
  await writeFile(join(dir, 'host.ts'), program)
  const child = spawn(process.execPath, ['--conditions=dsh-source', join(dir, 'host.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>(resolve => child.on('exit', resolve))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { lines: stdout.trimEnd().split('\n'), stderr, code }
}

test('a host that reports what nobody caught outlives raw timers and promises of plugins, and names whose they were', async t => {
  const { lines, stderr, code } = await run(t, host(handlers))
  assert.deepEqual(lines.slice(0, -1).toSorted(), [
    'clumsy test/poke: listener',
    'clumsy timer: own timer',
    'clumsy uncaught: raw promise',
    'clumsy uncaught: raw timer',
    'clumsy uncaught: timer of a listener',
    'not of a plugin: no error at all',
    'root uncaught in "./clumsy.ts", which has ended: cannot make effect "effect": plugin "clumsy" is disposed',
    'root uncaught in "./clumsy.ts", which has ended: service "settings" is not provided',
  ])
  assert.deepEqual([lines.at(-1), code, stderr], ['alive', 7, ''])
})

test('without such handlers a raw timer of a plugin ends the process, which only the host can prevent', async t => {
  const { lines, stderr, code } = await run(t, host(''))
  assert.equal(code, 1)
  assert.match(stderr, /raw (timer|promise)/)
  assert.ok(!lines.includes('alive'))
})
