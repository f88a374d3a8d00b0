import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import { fs as files, LocalFs } from '../../src/plugins/fs/index.ts'
import type { FsError } from '../../src/plugins/fs/index.ts'
import { sandbox, sandboxBounds } from '../../src/plugins/sandbox/index.ts'
import { search } from '../../src/plugins/search/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'

const needsProc = {
  skip: process.platform !== 'linux' && 'folders are held open through /proc, which only Linux has',
}

/** Puts a link in the place of a folder and the folder back again, without end. */
const swapper = `
  const fs = require('node:fs')
  const [folder, aside, link] = process.argv.slice(1)
  // A writer may make the folder anew while it is away.
  const move = (from, to) => {
    try {
      fs.renameSync(from, to)
    } catch {
      fs.rmSync(to, { recursive: true, force: true })
      fs.renameSync(from, to)
    }
  }
  process.stdout.write('up')
  for (;;) {
    try {
      move(folder, aside)
      move(link, folder)
      move(folder, link)
      move(aside, folder)
    } catch {}
  }
`

/** A folder that another process swaps for a link to one outside. */
async function setup(t: TestContext, inside: Readonly<Record<string, string>> = {}) {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-race-')))
  const [work, folder, outside] = ['work', 'work/folder', 'outside'].map(name => join(root, name))
  if (work === undefined || folder === undefined || outside === undefined) return assert.fail()
  for (const made of [folder, outside]) fs.mkdirSync(made, { recursive: true })
  for (const [name, content] of Object.entries(inside)) fs.writeFileSync(join(folder, name), content)
  fs.symlinkSync(outside, join(work, 'link'))
  const args = ['-e', swapper, folder, join(work, 'aside'), join(work, 'link')]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    fs.rmSync(root, { recursive: true, force: true })
  })
  await once(child.stdout, 'data')
  const local = new LocalFs({ cwd: work, diffBasisMaxBytes: 2 ** 20 })
  /** What a policy does: finds the target, and lets it pass only where it lies inside. */
  const judged = async (name: string) => {
    const target = await local.resolve(name)
    return local.processPath(target).startsWith(`${folder}/`) || local.processPath(target) === folder
      ? target
      : undefined
  }
  return { outside, work, local, judged }
}

/** Makes attempts until so many came through and so many were caught in the act, for seconds at most. */
async function race(
  wanted: { readonly done: number; readonly caught: number },
  attempt: (round: number) => Promise<boolean>,
): Promise<{ readonly done: number; readonly caught: number }> {
  let [done, caught] = [0, 0]
  const until = performance.now() + 10_000
  for (let round = 0; (done < wanted.done || caught < wanted.caught) && performance.now() < until; round++) {
    try {
      if (await attempt(round)) done++
    } catch (error) {
      assert.equal((error as Error).name, 'FsError', String(error))
      if ((error as FsError).code === 'FS_STALE_VERSION') caught++
    }
  }
  return { done, caught }
}

test('while a folder is swapped for a link in a loop, nothing is written outside', needsProc, async t => {
  const { outside, local, judged } = await setup(t)
  fs.writeFileSync(join(outside, 'a'), 'theirs')
  const { done, caught } = await race({ done: 20, caught: 50 }, async round => {
    const target = await judged('folder/a')
    if (target === undefined) return false
    await local.writeText(target, `text ${round}`)
    const other = await judged(`folder/new-${round}/b`)
    if (other !== undefined) await local.writeText(other, 'text')
    return true
  })
  assert.ok(done > 0 && caught > 0, `${done} came through, ${caught} were caught`)
  assert.deepEqual(fs.readdirSync(outside), ['a'])
  assert.equal(fs.readFileSync(join(outside, 'a'), 'utf8'), 'theirs')
})

test('nor is anything outside edited, or shown in what an edit fails with', needsProc, async t => {
  const { outside, local, judged } = await setup(t, { a: 'other words\n' })
  fs.writeFileSync(join(outside, 'a'), 'secret words\n')
  const edits = [{ oldString: 'secret word', newString: 'changed word', replaceAll: false }]
  const { caught } = await race({ done: 0, caught: 150 }, async () => {
    const target = await judged('folder/a')
    if (target === undefined) return false
    try {
      await local.editText(target, edits)
    } catch (error) {
      assert.doesNotMatch((error as Error).message, /secret words/)
      throw error
    }
    return true
  })
  assert.ok(caught > 0)
  assert.equal(fs.readFileSync(join(outside, 'a'), 'utf8'), 'secret words\n')
})

test('nor is a file outside read', needsProc, async t => {
  const { outside, local, judged } = await setup(t)
  fs.writeFileSync(join(outside, 'secret'), 'secret words\n')
  const { caught } = await race({ done: 0, caught: 20 }, async () => {
    const target = await judged('folder/secret')
    if (target !== undefined) await local.readText(target)
    return target !== undefined && assert.fail('there is no such file inside')
  })
  assert.ok(caught > 0)
})

test('nor is a folder outside listed', needsProc, async t => {
  const { outside, local, judged } = await setup(t)
  fs.writeFileSync(join(outside, 'secret'), '')
  const { caught } = await race({ done: 0, caught: 20 }, async () => {
    const target = await judged('folder')
    if (target !== undefined) assert.deepEqual(await local.listDir(target), [])
    return target !== undefined
  })
  assert.ok(caught > 0)
})

test('nor are lines of a file outside shown by a search', needsProc, async t => {
  const { outside, work } = await setup(t, { inside: 'plain words\n' })
  fs.writeFileSync(join(outside, 'secret'), 'secret words\n')
  fs.writeFileSync(join(outside, 'inside'), 'secret words\n')
  const { ctx } = await createHarness()
  t.after(() => ctx.dispose())
  await ctx.plugin(files)
  await ctx.plugin(sandbox)
  await ctx.plugin(sandboxBounds, { unreadable: [outside] })
  await ctx.plugin(subprocess, { env: process.env })
  await ctx.plugin(search)
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: work } })
  let [round, shown, caught] = [0, 0, 0]
  const until = performance.now() + 20_000
  while ((shown < 5 || caught < 5) && performance.now() < until) {
    const { content } = await ctx.tools.execute({
      callId: CallId(`c${++round}`),
      name: 'grep',
      arguments: { pattern: 'words', path: 'folder', output_mode: 'content' },
      signal: AbortSignal.timeout(20_000),
      agent,
    })
    const text = content.map(block => (block.type === 'text' ? block.text : '')).join('')
    assert.doesNotMatch(text, /secret words/)
    if (text.includes('plain words')) shown++
    if (text.includes('could not be read')) caught++
  }
  assert.ok(shown > 0 && caught > 0, `${shown} were shown, ${caught} were caught of ${round}`)
})
