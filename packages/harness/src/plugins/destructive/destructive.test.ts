import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { destructionsOf, parseShell } from '../shell-command/index.ts'
import { gitFolderOf, readRefs } from './git-refs.ts'
import { stakeOf, withinWorkspace } from './stake.ts'
import type { Stake } from './stake.ts'

function setup(t: TestContext) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'destructive-')))
  t.after(() => rmSync(base, { recursive: true, force: true }))
  const work = join(base, 'work')
  mkdirSync(join(work, 'folder'), { recursive: true })
  writeFileSync(join(work, 'file'), 'x')
  writeFileSync(join(work, 'empty'), '')
  writeFileSync(join(base, 'outside'), 'x')
  const stake = async (text: string): Promise<Stake | undefined> => {
    const program = await parseShell(text)
    assert.ok(program)
    return await stakeOf(destructionsOf(program, { cwd: work }), work)
  }
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: work, encoding: 'utf8', timeout: 20_000, env: gitEnv }).trim()
  return { base, work, stake, git }
}

const gitEnv = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'me',
  GIT_AUTHOR_EMAIL: 'me@example.invalid',
  GIT_COMMITTER_NAME: 'me',
  GIT_COMMITTER_EMAIL: 'me@example.invalid',
}

test('only what is there is at stake', async t => {
  const { stake, work } = setup(t)
  const nothing = [
    'rm none',
    'mv file none',
    'cp file folder',
    'echo x > none',
    'echo x > empty',
    'git reset --hard',
    'git branch -D x',
    'git push -f',
    'git checkout main',
  ]
  for (const text of nothing) assert.equal(await stake(text), undefined, text)
  for (const text of [
    'rm file',
    'mv folder/none file',
    'echo x > file',
    'rm -r folder',
    'truncate -s 0 file',
  ]) {
    const { isInside, outside } = (await stake(text)) ?? {}
    assert.deepEqual([isInside, outside], [true, []], text)
  }
  assert.deepEqual((await stake('rm file empty none'))?.named, [join(work, 'file'), join(work, 'empty')])
})

test('what a copy would overwrite in a folder is found by its own name', async t => {
  const { stake, work } = setup(t)
  writeFileSync(join(work, 'folder/file'), 'x')
  assert.deepEqual((await stake('cp file folder'))?.named, [join(work, 'folder/file')])
  assert.deepEqual((await stake('cp -r other/. .'))?.named, [work])
})

test('links are followed where they are written through, and not where they are removed', async t => {
  const { stake, base, work } = setup(t)
  symlinkSync(join(base, 'outside'), join(work, 'link'))
  assert.deepEqual((await stake('rm link'))?.outside, [])
  assert.deepEqual((await stake('echo x > link'))?.outside, [join(base, 'outside')])
  symlinkSync(base, join(work, 'way'))
  assert.deepEqual((await stake('rm way/outside'))?.outside, [join(base, 'outside')])
})

test('what lies outside, or above, is told apart, and counts for nothing where it is out of reach', async t => {
  const { stake, base, work } = setup(t)
  for (const [text, path] of [
    ['rm ../outside', join(base, 'outside')],
    ['cd .. && rm outside', join(base, 'outside')],
  ] as const) {
    const found = await stake(text)
    assert.deepEqual(found?.outside, [path], text)
    assert.equal(found && withinWorkspace(found), undefined, text)
  }
  const open = await stake('rm "$x"')
  assert.ok(open?.isOpen)
  assert.deepEqual(withinWorkspace(open)?.isInside, true)
  assert.equal(work, open.root)
})

test('what holds the workspace puts it at stake, in reach or not', async t => {
  const { stake, base, work } = setup(t)
  for (const text of [
    `rm -rf ${base}`,
    `rm -rf ${base}/*`,
    'rm -rf ~/x',
    `rsync --delete -r folder/ ${base}`,
  ]) {
    const found = await stake(text)
    assert.equal(found?.isInside, true, text)
    assert.equal(withinWorkspace(found)?.isInside, true, text)
  }
  for (const text of [`rm -rf ${work}x`, `rm -rf ${base}/outside`])
    assert.notEqual((await stake(text))?.isInside, true, text)
})

test('the history of a repository is at stake where its folder would go', async t => {
  const { stake, work, git } = setup(t)
  git('init', '-q')
  const own = join(work, '.git')
  for (const text of [
    'rm -rf .git',
    'rm -rf .git/objects',
    `rm -rf ${work}`,
    'find . -delete',
    'rsync -a --delete folder/ ./',
  ])
    assert.deepEqual((await stake(text))?.histories, [own], text)
  for (const text of [
    'rm -rf ./*',
    'rm -rf *',
    "find . -name '*.o' -delete",
    'git clean -fdx',
    'cp -r folder/. .',
  ])
    assert.deepEqual((await stake(text))?.histories ?? [], [], text)
  mkdirSync(join(work, 'folder/nested/.git'), { recursive: true })
  assert.deepEqual((await stake('rm -rf folder'))?.histories, [join(work, 'folder/nested/.git')])
})

test('a command of git in a folder below means the whole repository', async t => {
  const { base, work, git } = setup(t)
  git('init', '-q')
  const program = await parseShell('git reset --hard')
  assert.ok(program)
  const folder = join(work, 'folder')
  const found = await stakeOf(destructionsOf(program, { cwd: folder }), folder)
  assert.deepEqual(found?.outside, [work])
  assert.ok(existsSync(base))
})

test('names of git are read where they lie, packed, in worktrees, and of the stash all', async t => {
  const { base, work, git } = setup(t)
  git('init', '-qb', 'main')
  git('add', '.')
  git('commit', '-qm', 'one')
  git('branch', 'loose')
  git('tag', 'v1')
  git('pack-refs', '--all')
  git('branch', 'fresh')
  for (const text of ['a', 'b']) {
    writeFileSync(join(work, 'file'), text)
    git('stash', '-q')
  }
  git('worktree', 'add', '-q', join(base, 'tree'))
  const head = git('rev-parse', 'HEAD')
  const stashes = git('rev-parse', 'stash@{1}', 'stash@{0}').split('\n')
  for (const folder of [work, join(work, 'folder'), join(base, 'tree')]) {
    const found = await gitFolderOf(folder)
    assert.ok(found)
    const names = [
      'HEAD',
      'refs/heads/loose',
      'refs/heads/fresh',
      'refs/tags/v1',
      'refs/heads/none',
      'refs/stash',
      'refs/../config',
    ]
    assert.deepEqual(
      [...(await readRefs(found, names))],
      [
        ['HEAD', head],
        ['refs/heads/loose', head],
        ['refs/heads/fresh', head],
        ['refs/tags/v1', head],
        ...stashes.map(id => [`refs/stash ${id}`, id]),
      ],
      folder,
    )
  }
  assert.equal(await gitFolderOf(base), undefined)
})
