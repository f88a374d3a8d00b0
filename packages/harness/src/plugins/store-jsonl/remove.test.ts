import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { faultyFileSystem, logOf, userFact } from '../../testing/index.ts'
import { isProvablyDead } from '../persistence/index.ts'
import type { ProcessIdentity } from '../persistence/index.ts'
import { localFileSystem, watchFolder } from './local.ts'
import { JsonlMedium } from './medium.ts'

const id = SessionId('s1')
const header: SessionHeader = { version: 0, id, createdAt: 1, cwd: '/srv' }
const events = logOf(['user/message', userFact('hello')], ['user/message', userFact('x'.repeat(70_000))])

/** A stored session with an artifact, and programs that open it, each of which may die. */
async function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'remove-'))
  t.after(() => rmSync(root, { recursive: true }))
  const dead = new Set<number>()
  let next = 100
  const program = () => {
    const fs = faultyFileSystem(localFileSystem)
    const self: ProcessIdentity = { pid: next++, start: '1', boot: 'b', host: 'h', space: 'p' }
    const look = (pid: number): 'gone' | { start: string } => (dead.has(pid) ? 'gone' : { start: '1' })
    const processes = {
      self: () => self,
      isDead: (other: ProcessIdentity) => isProvablyDead(other, self, look),
    }
    const medium = new JsonlMedium(root, { fs, processes, now: () => 1, watch: watchFolder })
    return { fs, medium, die: () => dead.add(self.pid) }
  }
  const { medium } = program()
  await store(medium, header, events)
  const folder = dirname(medium.locate(header))
  return { root, program, medium, folder }
}

async function store(medium: JsonlMedium, own: SessionHeader, log: readonly SessionEvent[]): Promise<void> {
  const writer = medium.begin(own)
  await writer.append(log)
  await writer.close()
}

test('a removed session is gone with all that lay beside its log, and its id is free', async t => {
  const { medium, folder } = await setup(t)
  writeFileSync(join(folder, 'torn-at-1-1.bin'), 'x')
  mkdirSync(join(folder, 'more', 'of', 'it'), { recursive: true })
  writeFileSync(join(folder, 'more', 'of', 'it', 'file'), 'x')
  const elsewhere = join(dirname(folder), 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'file'), 'x')
  symlinkSync(elsewhere, join(folder, 'link'))
  assert.equal(await medium.remove(id), true)
  assert.deepEqual(readdirSync(dirname(folder)), ['elsewhere'])
  assert.deepEqual(readdirSync(elsewhere), ['file'])
  assert.equal(await medium.read(id), undefined)
  assert.equal(await medium.remove(id), false)
  await store(medium, header, events.slice(0, 1))
  assert.equal((await medium.read(id))?.events.length, 1)
})

test('a session that is open in a program, or another one in its folder, is not removed', async t => {
  const { medium, program, folder } = await setup(t)
  const { writer } = await medium.resume(id)
  await assert.rejects(program().medium.remove(id), { code: 'SESSION_HELD' })
  await writer.close()
  const copy = join(dirname(folder), 's2')
  cpSync(folder, copy, { recursive: true })
  await assert.rejects(medium.remove(SessionId('s2')), {
    code: 'SESSION_DAMAGED',
    message: /log of session "s1"/,
  })
  assert.ok(existsSync(join(copy, 'log.jsonl.zst')))
  assert.deepEqual((await medium.read(id))?.events, events)
})

test('a log that cannot be read can be removed', async t => {
  const { medium, folder } = await setup(t)
  writeFileSync(join(folder, 'log.jsonl.zst'), 'no log')
  assert.equal(await medium.remove(id), true)
  assert.equal(existsSync(folder), false)
})

test('a folder that lies where the log should is removed with all that is in it', async t => {
  const { medium, folder } = await setup(t)
  rmSync(join(folder, 'log.jsonl.zst'))
  mkdirSync(join(folder, 'log.jsonl.zst', 'more'), { recursive: true })
  writeFileSync(join(folder, 'log.jsonl.zst', 'more', 'file'), 'x')
  assert.equal(await medium.remove(id), true)
  assert.equal(existsSync(folder), false)
})

test('a session behind a link is left as it is, and what to do is said; one whose project is a link is removed', async t => {
  const { root, medium, folder } = await setup(t)
  const elsewhere = join(root, '..', `elsewhere-${basename(root)}`)
  t.after(() => rmSync(elsewhere, { recursive: true }))
  renameSync(folder, elsewhere)
  symlinkSync(elsewhere, folder)
  const before = readdirSync(elsewhere)
  await assert.rejects(medium.remove(id), {
    code: 'NOT_SUPPORTED',
    message: `session "s1" lies behind a link, which is not followed to remove it; remove the link: ${folder}`,
  })
  assert.deepEqual(readdirSync(elsewhere), before)
  assert.deepEqual((await medium.read(id))?.events, events)
  rmSync(folder)
  rmSync(dirname(folder), { recursive: true })
  mkdirSync(join(elsewhere, 's1'))
  for (const name of before) renameSync(join(elsewhere, name), join(elsewhere, 's1', name))
  symlinkSync(elsewhere, dirname(folder))
  assert.equal(await medium.remove(id), true)
  assert.deepEqual(readdirSync(elsewhere), [])
})

test('wherever a program dies in a removal, the session is there whole or gone, and its folder is cleared later', async t => {
  const probe = await setup(t)
  const { fs, medium } = probe.program()
  await medium.remove(id)
  const calls = fs.calls.length
  assert.ok(calls > 20, `${calls} calls`)
  for (let nth = 1; nth <= calls; nth += 2) {
    const { program, folder } = await setup(t)
    const first = program()
    first.fs.inject({ nth, times: Infinity, code: 'EIO' })
    await assert.rejects(first.medium.remove(id)).catch(() => undefined)
    first.die()
    const hint = `died at call ${nth}: ${fs.calls[nth - 1]}`
    const other = program().medium
    const log = await other.read(id)
    if (log !== undefined) assert.deepEqual(log.events, events, hint)
    await other.sweep()
    const left = (existsSync(folder) ? readdirSync(folder) : []).filter(name => !name.startsWith('lock.'))
    assert.deepEqual(left.toSorted(), log === undefined ? [] : ['artifacts', 'log.jsonl.zst'], hint)
    assert.equal(await other.remove(id), log !== undefined, hint)
  }
})

test('whoever watches a log hears of what is written, until it stops', async t => {
  const { medium, program } = await setup(t)
  const heard = Promise.withResolvers<void>()
  let count = 0
  const stop = program().medium.watch(id, () => {
    count += 1
    heard.resolve()
  })
  // Watching begins once the folder is found.
  await program().medium.revision(id)
  const { writer } = await medium.resume(id)
  await writer.append(
    logOf(...events.map(() => ['user/message', userFact('more')] as const)).map((event, at) => ({
      ...event,
      seq: 2 + at,
    })),
  )
  await heard.promise
  stop()
  const before = count
  await writer.close()
  await program().medium.revision(id)
  assert.equal(count, before)
  medium.watch(SessionId('none'), () => assert.fail())()
})
