import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLocalProcesses } from '@dsh/harness/plugins/persistence'
import { openPlace, pointsOf, seqOf, treeOf } from './rewind-place.ts'
import type { Place } from './rewind-place.ts'

/** The one private repository of the place. */
function storeOf({ home }: Place): string {
  const [name = ''] = readdirSync(join(home, 'restore'))
  return join(home, 'restore', name)
}

/** Takes the files back to before the first prompt. */
async function back({ ctx, agent: { session } }: Place) {
  return await ctx.rewind.apply(session, seqOf(session, 'user/message'), { scope: 'files' })
}

/** The stored object of a file whose content was `text`. */
async function objectOf(place: Place, path: string): Promise<string> {
  const [point] = pointsOf(place.agent.session)
  if (point === undefined) throw new Error('no point')
  const files = await place.ctx.rewind.filesAt({ ...point.data, ...rest(place, point.seq) })
  const oid = files.find(file => file.path === path)?.oid ?? ''
  return join(storeOf(place), 'objects', oid.slice(0, 2), oid.slice(2))
}

function fileOf(text: string) {
  const oid = createHash('sha1').update(`blob ${text.length}\0${text}`).digest('hex')
  return { kind: '100644', mode: 0o644, oid, size: text.length } as const
}

function rest({ workspace }: Place, seq: number) {
  return { workspace, seq, kind: 'turn', changed: [] } as const
}

test('names that every object of the language has are names like others', async t => {
  const place = await openPlace(t)
  const { at, turn, workspace } = place
  for (const name of ['constructor', 'toString', '__proto__']) await writeFile(at(name), 'old')
  const before = treeOf(workspace)
  await turn(async () => {
    await writeFile(at('constructor'), 'new')
    await writeFile(at('__proto__'), 'new')
    await rm(at('toString'))
    await writeFile(at('valueOf'), 'new')
  })
  assert.deepEqual((await back(place)).kept, [])
  assert.deepEqual(Object.entries(treeOf(workspace)), Object.entries(before))
})

test('a folder whose place a link took has no files below it', async t => {
  const place = await openPlace(t)
  const { ctx, agent, at, turn, workspace } = place
  await mkdir(at('d'))
  for (const name of ['d/f', 'd/g']) await writeFile(at(name), name)
  const before = treeOf(workspace)
  await turn(
    async () => {
      await rename(at('d'), at('e'))
      await symlink('e', at('d'))
    },
    () => writeFile(at('e/f'), 'changed'),
  )
  const after = treeOf(workspace)
  assert.deepEqual((await back(place)).kept, [])
  assert.deepEqual(treeOf(workspace), before)
  await ctx.rewind.apply(agent.session, 'undo')
  assert.deepEqual(treeOf(workspace), after)
})

for (const damage of ['removed', 'overwritten'] as const)
  test(`where the content of one file was ${damage} in the store, the others come back`, async t => {
    const place = await openPlace(t)
    const { ctx, agent, at, turn, workspace } = place
    for (const name of ['a', 'b', 'c']) await writeFile(at(name), `old ${name}`)
    await turn(async () => {
      for (const name of ['a', 'b']) await writeFile(at(name), `new ${name}`)
      await rm(at('c'))
    })
    const after = treeOf(workspace)
    const object = await objectOf(place, 'a')
    await rm(object)
    if (damage === 'overwritten') await writeFile(object, 'garbage')
    const prompt = seqOf(agent.session, 'user/message')
    const preview = await ctx.rewind.preview(agent.session, prompt, { scope: 'files' })
    assert.deepEqual(
      preview.files.map(({ path, status }) => `${status} ${path}`),
      ['unknown a', 'restore b', 'recreate c'],
    )
    const { kept } = await back(place)
    assert.deepEqual(kept, [{ path: 'a', reason: 'not-in-point' }])
    const { a, b, c } = treeOf(workspace)
    assert.deepEqual([a, b, c], ['644 new a', '644 old b', '644 old c'])
    await ctx.rewind.apply(agent.session, 'undo')
    assert.deepEqual(treeOf(workspace), after)
  })

test('what could not be brought again is not overwritten', async t => {
  const place = await openPlace(t)
  const { ctx, agent, at, turn, workspace } = place
  await writeFile(at('a'), 'new')
  await turn(() => writeFile(at('b'), 'b'))
  const object = await objectOf(place, 'a')
  await turn(
    () => writeFile(at('a'), 'old'),
    () => writeFile(at('a'), 'new'),
  )
  await rm(object)
  const second = seqOf(agent.session, 'tool/call', 2)
  const options = { scope: 'files' } as const
  assert.deepEqual((await ctx.rewind.apply(agent.session, second, options)).kept, [
    { path: 'a', reason: 'not-in-point' },
  ])
  assert.equal(treeOf(workspace)['a'], '644 new')
  // By then it is kept again.
  assert.deepEqual((await ctx.rewind.apply(agent.session, second, options)).kept, [])
  assert.equal(treeOf(workspace)['a'], '644 old')
  await ctx.rewind.apply(agent.session, 'undo')
  assert.equal(treeOf(workspace)['a'], '644 new')
})

for (const text of ['{', '[]', '{}', '{"owner":{"pid":1}}', '\0\0'])
  test(`a note of a rewind that says ${JSON.stringify(text)} stops no other one, and is told of`, async t => {
    const place = await openPlace(t)
    const { ctx, agent, at, turn, notices, workspace } = place
    await writeFile(at('a'), 'old')
    const before = treeOf(workspace)
    await turn(() => writeFile(at('a'), 'new'))
    await writeFile(join(storeOf(place), 'rewind.json'), text)
    await ctx.rewind.preview(agent.session, seqOf(agent.session, 'user/message'))
    assert.deepEqual(
      notices.map(({ code }) => code),
      ['REWIND_BROKEN_OFF'],
    )
    await back(place)
    assert.deepEqual(treeOf(workspace), before)
  })

test('where the session of a rewind that was broken off is gone, its files are completed', async t => {
  const place = await openPlace(t)
  const { ctx, agent, at, turn, notices, workspace } = place
  await writeFile(at('a'), 'old')
  await turn(() => writeFile(at('a'), 'new'))
  const prompt = seqOf(agent.session, 'user/message')
  const journal = join(storeOf(place), 'rewind.json')
  const dead = { ...createLocalProcesses().self(), boot: 'an earlier one' }
  const plan = {
    steps: [{ path: 'b', action: 'delete', from: fileOf('b') }],
    kept: [],
    leaving: [],
    coming: [],
  }
  await writeFile(at('b'), 'b')
  const from = { session: 'gone', seq: 1 }
  await writeFile(
    journal,
    JSON.stringify({ owner: dead, nonce: 'n', scope: 'files', from, to: from, session: 'gone', plan }),
  )
  await ctx.rewind.preview(agent.session, prompt, { scope: 'files' })
  assert.deepEqual(
    notices.map(({ message }) => message),
    [
      `the files of a rewind of "${workspace}" that was broken off have been completed: session "gone" is not stored`,
    ],
  )
  assert.equal(treeOf(workspace)['b'], undefined)
  assert.ok(!existsSync(journal))
})

test('a lock of all refs that a dead git left stops no preview', async t => {
  const place = await openPlace(t)
  const { ctx, agent, at, turn } = place
  await turn(() => writeFile(at('a'), '1'))
  await writeFile(join(storeOf(place), 'packed-refs.lock'), '')
  const preview = await ctx.rewind.preview(agent.session, seqOf(agent.session, 'user/message'))
  assert.equal(preview.files.length, 1)
  assert.deepEqual(readdirSync(join(storeOf(place), 'refs/dsh')), ['preview', 'sessions'])
  assert.deepEqual(readdirSync(join(storeOf(place), 'refs/dsh/preview')), [])
})

const breaks: Readonly<Record<string, (store: string) => Promise<unknown>>> = {
  'a ref of garbage': async store => {
    const refs = join(store, 'refs/dsh/sessions')
    for (const name of readdirSync(refs)) await writeFile(join(refs, name), 'garbage\n')
  },
  'no HEAD': store => rm(join(store, 'HEAD')),
  'no refs': store => rm(join(store, 'refs'), { recursive: true }),
  'no objects': store => rm(join(store, 'objects'), { recursive: true }),
  'a configuration of garbage': store => writeFile(join(store, 'config'), '[[['),
}

for (const [name, breakIt] of Object.entries(breaks))
  test(`a store with ${name} is mended by the next point`, async t => {
    const first = await openPlace(t)
    await writeFile(first.at('a'), 'old')
    await first.turn(() => writeFile(first.at('a'), 'new'))
    await first.ctx.dispose()
    await breakIt(storeOf(first))
    const place = await openPlace(t, { base: first.base })
    const { ctx, agent, at, turn, notices } = place
    await turn(() => writeFile(at('a'), 'newer'))
    assert.deepEqual(notices, [])
    const last = seqOf(agent.session, 'user/message', 1)
    await ctx.rewind.apply(agent.session, last, { scope: 'files' })
    assert.equal(readFileSync(at('a'), 'utf8'), 'new')
  })

test('a point that takes too long leaves nothing that takes room', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'rewind-path-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const hanging =
    '[ "$1" = fast-import ] && { touch objects/pack/tmp_pack_it fast_import_crash_2; exec /bin/sleep 9; }'
  const script = `#!/bin/sh\nPATH='${process.env['PATH']}'\n${hanging}\nexec git "$@"\n`
  await writeFile(join(folder, 'git'), script, { mode: 0o755 })
  const place = await openPlace(t, { env: { PATH: folder }, maxMs: 1000 })
  await place.turn(() => writeFile(place.at('a'), '1'))
  assert.deepEqual(
    place.notices.map(({ code }) => code),
    ['REWIND_OFF'],
  )
  const store = storeOf(place)
  assert.deepEqual(readdirSync(join(store, 'objects/pack')), [])
  assert.deepEqual(globSync('fast_import_crash_*', { cwd: store }), [])
})

test('once a day what a killed git left goes, but for what is still being written', async t => {
  const place = await openPlace(t)
  await place.turn(() => writeFile(place.at('a'), '1'))
  const store = storeOf(place)
  const old = new Date(Date.now() - 48 * 60 * 60 * 1000)
  for (const path of ['objects/pack/tmp_pack_old', 'fast_import_crash_1', 'packed-refs.lock']) {
    await writeFile(join(store, path), '')
    await utimes(join(store, path), old, old)
  }
  await utimes(join(store, 'HEAD'), old, old)
  await writeFile(join(store, 'objects/pack/tmp_pack_new'), '')
  await place.turn(() => writeFile(place.at('a'), '2'))
  await place.turn(() => writeFile(place.at('a'), '3'))
  await place.ctx.dispose()
  const patterns = ['objects/pack/tmp_*', 'fast_import_crash_*', '*.lock']
  const left = patterns.flatMap(each => globSync(each, { cwd: store }))
  assert.deepEqual(left, ['objects/pack/tmp_pack_new'])
})
