import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { openPlace, pointsOf, seqOf, treeOf } from './rewind-place.ts'

const program = join(import.meta.dirname, 'rewind-child.ts')

/** Another program in the same place; it never outlives the test. */
function start(t: TestContext, base: string, what: 'take' | 'rewind'): ChildProcess {
  const child = fork(program, [base, what], {
    execArgv: ['--conditions=dsh-source'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function until(isTrue: () => boolean, child: ChildProcess): Promise<void> {
  while (!isTrue() && child.exitCode === null && child.signalCode === null) await setImmediate()
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Entries of a folder; none where it is not there. */
function entriesOf(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
}

test('a program killed while it takes a point leaves nothing that stops the next one', async t => {
  const first = await openPlace(t)
  await first.turn(() => writeFile(first.at('start'), '1'))
  await first.ctx.dispose()
  const restore = join(first.home, 'restore')
  for (const growth of [30, 90]) {
    const objects = entriesOf(restore).length
    const child = start(t, first.base, 'take')
    await until(() => entriesOf(restore).length > objects + growth, child)
    assert.equal(child.exitCode, null)
    await kill(child)
    // As if git itself had been killed too, in the moment in which it had the lock.
    const [repository = ''] = readdirSync(restore)
    const refs = join(restore, repository, 'refs/dsh/sessions')
    for (const ref of readdirSync(refs))
      if (!ref.endsWith('.lock')) await writeFile(join(refs, `${ref}.lock`), '')
    const next = await openPlace(t, { base: first.base })
    const before = treeOf(next.workspace)
    await next.turn(() => rm(next.at('start'), { force: true }))
    const { session } = next.agent
    const prompts = session.events.filter(({ type }) => type === 'user/message')
    await next.ctx.rewind.apply(session, prompts.at(-1)?.seq ?? -1, { scope: 'files' })
    assert.deepEqual(treeOf(next.workspace), before)
    assert.deepEqual(next.notices, [])
    assert.ok(pointsOf(session).length > 2)
    await next.ctx.dispose()
  }
})

test('a rewind that was killed halfway is completed by the next one, once, and told of', async t => {
  const first = await openPlace(t)
  await mkdir(first.at('many'))
  for (let file = 0; file < 150; file++) await writeFile(first.at(`many/${file}`), `old ${file}`)
  const old = treeOf(first.workspace)
  await first.turn(async () => {
    for (let file = 0; file < 150; file += 2) await writeFile(first.at(`many/${file}`), `new ${file}`)
    for (let file = 1; file < 150; file += 2) await rm(first.at(`many/${file}`))
    await writeFile(first.at('extra'), 'new')
  })
  const changed = treeOf(first.workspace)
  await first.ctx.dispose()
  const child = start(t, first.base, 'rewind')
  await until(() => existsSync(first.at('many/1')), child)
  await kill(child)
  const half = treeOf(first.workspace)
  assert.notDeepEqual(half, changed)
  assert.notDeepEqual(half, old)
  const next = await openPlace(t, { base: first.base })
  const { session } = next.agent
  await next.ctx.rewind.preview(session, seqOf(session, 'user/message'), { scope: 'files' })
  assert.deepEqual(treeOf(next.workspace), old)
  assert.deepEqual(
    next.notices.map(({ code }) => code),
    ['REWIND_BROKEN_OFF'],
  )
  const applied = session.last('rewind/applied')
  assert.deepEqual([applied?.data.written, applied?.data.kept], [151, []])
  await next.ctx.rewind.apply(session, 'undo')
  assert.deepEqual(treeOf(next.workspace), changed)
  assert.equal(readFileSync(next.at('extra'), 'utf8'), 'new')
  assert.equal(next.notices.length, 1)
})

test('two programs do not rewind one workspace at a time', async t => {
  const place = await openPlace(t)
  await place.turn(() => writeFile(place.at('a'), '1'))
  const { ctx, agent } = place
  const prompt = seqOf(agent.session, 'user/message')
  const both = await Promise.allSettled([
    ctx.rewind.apply(agent.session, prompt, { scope: 'files' }),
    ctx.rewind.apply(agent.session, prompt, { scope: 'files' }),
  ])
  const codes = both.map(each => (each.status === 'rejected' ? (each.reason as { code: string }).code : ''))
  assert.deepEqual(codes.toSorted(), ['', 'REWIND_BUSY'])
})
