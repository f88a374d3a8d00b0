import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { toMarkdown } from '../../src/plugins/web/markdown.ts'

const megabytes = (text: string, count: number): string =>
  text.repeat(Math.floor((count * 1e6) / text.length))

/** Made to take for ever, or all memory, in whoever converts pages carelessly. */
const hostile: Readonly<Record<string, string>> = {
  'unterminated tags': megabytes('<a ', 5),
  'unterminated attributes': megabytes('<a href="', 5),
  'nothing but <': megabytes('<', 5),
  'comments without an end': megabytes('<!--', 5),
  'comments that end at once': megabytes('<!-->', 5),
  'scripts without an end': megabytes('<script>', 5),
  'elements in each other': megabytes('<div>', 5),
  'formatting in each other': megabytes('<b>', 5),
  'ends that nothing opened': megabytes('</div>', 5),
  'cells without a table': megabytes('<td>a', 5),
  'a table of a billion columns':
    '<table><tr><td colspan=1000000000 rowspan=1000000000>a<td>b</tr><tr><td>c</table>',
  'lines that cannot be converted in time': megabytes('<br>', 1.9),
}

describe('a page is read in bounded time, and the program goes on meanwhile', () => {
  for (const [what, html] of Object.entries(hostile)) {
    test(what, { timeout: 60_000 }, async () => {
      let turns = 0
      const timer = setInterval(() => turns++, 5)
      const { text } = await toMarkdown(html, 'https://a.test/', new AbortController().signal)
      clearInterval(timer)
      assert.equal(typeof text, 'string')
      assert.ok(turns > 1)
    })
  }
})

test('nothing of the web is loaded before it is used', async t => {
  const home = await mkdtemp(join(tmpdir(), 'dsh-web-'))
  t.after(() => rm(home, { recursive: true, force: true }))
  const preset = new URL('../../src/presets/headless.ts', import.meta.url).href
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    const { headless } = await import(${JSON.stringify(preset)})
    const ctx = await headless({ home: ${JSON.stringify(home)}, env: {}, permission: 'read-only' })
    if (ctx.tools.get('web_fetch') === undefined) throw new Error('no web_fetch')
    await ctx.dispose()
    console.log(JSON.stringify(loaded))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=dsh-source', '--input-type=module', '--eval', program],
    { timeout: 60_000, killSignal: 'SIGKILL', maxBuffer: 10_000_000 },
  )
  const loaded = JSON.parse(stdout) as readonly string[]
  const heavy =
    /linkedom|readability|turndown|plugins\/web\/(fetch|wire|article|markdown|html-text|json-search|deepseek-search)\.ts$/
  assert.deepEqual(
    loaded.filter(url => heavy.test(url)),
    [],
  )
  assert.ok(loaded.some(url => url.endsWith('plugins/web/index.ts')))
})
