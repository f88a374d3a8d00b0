import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createHarness } from '../../testing/index.ts'
import { hasProjectParts, LocalTrust, projectParts, trust } from './index.ts'

function setup(t: TestContext) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'trust-')))
  t.after(() => rmSync(base, { recursive: true, force: true }))
  const [home, project] = [join(base, 'home'), join(base, 'project')]
  mkdirSync(join(project, 'sub/deep'), { recursive: true })
  return { base, home, project, known: new LocalTrust(home), file: join(home, 'trust.json') }
}

const part = (path: string, digit: string) => ({ path, sha256: digit.repeat(64) })

test('a folder is undecided until a person says something, and what is below goes with it', async t => {
  const { known, project, home } = setup(t)
  assert.equal(await known.stateOf(project), 'undecided')
  assert.ok(!existsSync(home))
  await known.grant(project)
  for (const folder of [project, join(project, 'sub'), join(project, 'sub/deep'), join(project, 'sub/..')])
    assert.equal(await known.stateOf(folder), 'trusted', folder)
  assert.equal(await known.stateOf(join(project, '..')), 'undecided')
  await known.revoke(join(project, 'sub'))
  assert.equal(await known.stateOf(join(project, 'sub/deep')), 'untrusted')
  assert.equal(await known.stateOf(project), 'trusted')
  await known.revoke(project)
  assert.equal(await known.stateOf(project), 'untrusted')
})

test('a folder that is gone is revoked by its whole name only, and what was said before still counts', async t => {
  const { known, project, base } = setup(t)
  await known.grant(project)
  await known.revoke(join(base, 'gone'))
  await assert.rejects(known.revoke('nosuch'), { code: 'TRUST_FOLDER_GONE' })
  assert.equal(await known.stateOf(project), 'trusted')
  assert.equal((await known.list()).problem, undefined)
})

test('another repository below a trusted folder is decided by itself', async t => {
  const { known, project } = setup(t)
  mkdirSync(join(project, '.git'))
  await known.grant(project)
  mkdirSync(join(project, 'sub/.git'))
  assert.equal(await known.stateOf(project), 'trusted')
  assert.equal(await known.stateOf(join(project, 'sub')), 'undecided')
  assert.equal(await known.stateOf(join(project, 'sub/deep')), 'undecided')
  rmSync(join(project, 'sub/.git'), { recursive: true })
  writeFileSync(join(project, 'sub/.git'), 'gitdir: elsewhere\n')
  assert.equal(await known.stateOf(join(project, 'sub/deep')), 'undecided')
  await known.grant(join(project, 'sub'))
  assert.equal(await known.stateOf(join(project, 'sub/deep')), 'trusted')
})

test('a link below a trusted folder is what it leads to', async t => {
  const { known, project, base } = setup(t)
  await known.grant(project)
  mkdirSync(join(base, 'elsewhere'))
  symlinkSync(join(base, 'elsewhere'), join(project, 'link'))
  symlinkSync(project, join(base, 'alias'))
  assert.equal(await known.stateOf(join(project, 'link')), 'undecided')
  assert.equal(await known.stateOf(join(base, 'alias/sub')), 'trusted')
  assert.equal(await known.stateOf(join(project, 'gone')), 'undecided')
  await assert.rejects(known.grant(join(project, 'gone')), { code: 'TRUST_FOLDER_GONE' })
})

test('what runs is admitted as it is now, and again when it changed', async t => {
  const { known, project } = setup(t)
  const [one, other] = [part('.mcp.json', 'a'), part('.dsh/dsh.yml', 'b')]
  assert.deepEqual(await known.pending(project, [one, other]), [one, other])
  await assert.rejects(known.admit(project, [one]), { code: 'NOT_TRUSTED' })
  await known.grant(project, [one])
  assert.deepEqual(await known.pending(project, [one, other]), [other])
  await known.admit(project, [other])
  assert.deepEqual(await known.pending(project, [one, other]), [])
  const changed = part('.mcp.json', 'c')
  assert.deepEqual(await known.pending(project, [changed, other]), [changed])
  await known.admit(project, [changed])
  assert.deepEqual(await known.pending(project, [one, other]), [one])
  await known.revoke(project)
  assert.deepEqual(await known.pending(project, [changed, other]), [changed, other])
})

test('changes of several at once are all kept', async t => {
  const { known, project, home } = setup(t)
  const folders = Array.from({ length: 8 }, (_, index) => join(project, `f${index}`))
  for (const folder of folders) mkdirSync(folder)
  await Promise.all(
    folders.map((folder, index) => (index % 2 === 0 ? known : new LocalTrust(home)).grant(folder)),
  )
  assert.deepEqual(
    (await known.list()).entries.map(({ path }) => path),
    folders,
  )
})

test('a lock that a dead program left is taken over', async t => {
  const { known, project, file, home } = setup(t)
  mkdirSync(home)
  writeFileSync(`${file}.lock`, '4194305')
  await known.grant(project)
  assert.equal(await known.stateOf(project), 'trusted')
  assert.ok(!existsSync(`${file}.lock`))
})

test('a broken file trusts nothing, says why, and stays as it is', async t => {
  const { known, project, file } = setup(t)
  await known.grant(project)
  const sound = readFileSync(file, 'utf8')
  const entry = (fields: object) => JSON.stringify({ version: 1, folders: [fields] })
  const texts: readonly (readonly [text: string, why: RegExp])[] = [
    [sound.slice(0, -10), /it is no JSON/],
    ['[]', /its version is not 1/],
    ['{"version": 2, "folders": []}', /its version is not 1/],
    ['{"version": 1}', /folders: is no list/],
    [entry({ path: 'relative', state: 'trusted', parts: [] }), /folders\[0\]: is no decision/],
    [entry({ path: project, state: 'maybe', parts: [] }), /folders\[0\]: is no decision/],
    [
      entry({ path: project, state: 'trusted', parts: [{ path: 'x', sha256: 'y' }] }),
      /folders\[0\]: is no decision/,
    ],
  ]
  for (const [text, why] of texts) {
    writeFileSync(file, text)
    assert.equal(await known.stateOf(project), 'undecided')
    assert.match((await known.list()).problem ?? '', why)
    await assert.rejects(known.grant(project), { code: 'TRUST_BROKEN' })
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

test('what is no plain file, or far too large, trusts nothing and keeps nobody waiting', async t => {
  for (const [make, why] of [
    [(file: string) => execFileSync('mkfifo', [file]), /it is no file/],
    [(file: string) => mkdirSync(file), /it is no file/],
    [(file: string) => symlinkSync('/dev/zero', file), /it is no file/],
    [
      (file: string) => writeFileSync(file, ' '.repeat(17_000_000)),
      /it has 17000000 bytes, more than 16777216/,
    ],
  ] as const) {
    const { known, project, home, file } = setup(t)
    mkdirSync(home)
    make(file)
    assert.equal(await known.stateOf(project), 'undecided')
    assert.match((await known.list()).problem ?? '', why)
    await assert.rejects(known.grant(project), { code: 'TRUST_BROKEN' })
  }
})

test('what a project brings is found with its content, and no link is followed', t => {
  const { project, base } = setup(t)
  assert.deepEqual(projectParts(project), { parts: [], refused: [] })
  mkdirSync(join(project, '.dsh/plugins'), { recursive: true })
  writeFileSync(join(project, '.dsh/dsh.yml'), '- name: ./plugins/a.ts\n')
  writeFileSync(join(project, '.dsh/plugins/a.ts'), 'a')
  writeFileSync(join(project, '.dsh/hooks.json'), '{}')
  writeFileSync(join(project, '.mcp.json'), '{}')
  writeFileSync(join(base, 'secret'), 'secret')
  symlinkSync(join(base, 'secret'), join(project, 'AGENTS.md'))
  symlinkSync(base, join(project, '.claude'))
  const { parts, refused } = projectParts(project)
  assert.deepEqual(
    parts.map(({ path, kind }) => [path, kind]),
    [
      ['.dsh/dsh.yml', 'plugins'],
      ['.dsh/hooks.json', 'hooks'],
      ['.dsh/plugins/a.ts', 'plugins'],
      ['.mcp.json', 'servers'],
    ],
  )
  assert.equal(parts[2]?.sha256, 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb')
  assert.deepEqual(refused, ['AGENTS.md'])
  const hooks = projectParts(project, { only: 'hooks' })
  assert.deepEqual([hooks.parts.map(({ path }) => path), hooks.refused], [['.dsh/hooks.json'], []])
})

test('the folder of the program itself is nothing that the home folder brings', t => {
  const { base } = setup(t)
  const home = join(base, '.dsh')
  mkdirSync(join(home, 'sessions'), { recursive: true })
  writeFileSync(join(home, 'sessions/log'), 'of a session')
  assert.ok(hasProjectParts(base))
  assert.ok(!hasProjectParts(base, { home }))
  assert.deepEqual(projectParts(base, { home }), { parts: [], refused: [] })
})

test('the plugin provides the service, reads nothing by itself, and takes it away', async t => {
  const { home, project } = setup(t)
  const { ctx } = await createHarness()
  t.after(() => ctx.dispose())
  const fiber = ctx.plugin(trust, { home })
  await fiber
  assert.ok(!existsSync(home))
  assert.equal(await ctx.trust.stateOf(project), 'undecided')
  await fiber.dispose()
  assert.equal(ctx.get('trust'), undefined)
})

test('of more files than a person could look through the rest is refused, and none is left out', t => {
  const { project } = setup(t)
  mkdirSync(join(project, '.dsh/skills'), { recursive: true })
  const names = Array.from({ length: 1005 }, (_, index) => `.dsh/skills/s${String(index).padStart(4, '0')}`)
  for (const name of names) writeFileSync(join(project, name), name)
  const { parts, refused } = projectParts(project)
  assert.deepEqual(
    parts.map(({ path }) => path),
    names.slice(0, 1000),
  )
  assert.deepEqual(refused, names.slice(1000))
})
