import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { readTextNow } from './env.ts'
import { mayRunPrograms } from './git-config.ts'
import { nestedRepositories } from './nested.ts'
import { PlantedRepositories, plantedText } from './planted.ts'
import { protectedIn } from './protect.ts'

function repositories(...options: readonly string[]) {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-nested-')))
  const env = { PATH: process.env['PATH'], HOME: root, GIT_CONFIG_GLOBAL: '/dev/null' }
  const git = (folder: string, ...args: readonly string[]): void => {
    const who = ['-c', 'user.name=n', '-c', 'user.email=e', '-c', 'advice.addEmbeddedRepo=false']
    const cwd = join(root, folder)
    fs.mkdirSync(cwd, { recursive: true })
    execFileSync('git', [...who, ...args], { cwd, env, stdio: 'ignore', timeout: 20_000 })
  }
  const make = (folder: string): void => {
    git(folder, 'init', '-q', ...options)
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'x')
  }
  make('')
  for (const name of ['a', 'a file', 'ab/c', 'z']) fs.mkdirSync(join(root, name, '..'), { recursive: true })
  for (const name of ['a-1', 'ab/b', 'y']) {
    fs.mkdirSync(join(root, name, '..'), { recursive: true })
    fs.writeFileSync(join(root, name), name)
  }
  return {
    root,
    git,
    make,
    nested: () =>
      nestedRepositories(root)
        .map(path => relative(root, path))
        .toSorted(),
    [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}

test('repositories that an index records are found, however git writes the index', () => {
  const forms = {
    'version 2': [['update-index', '--index-version', '2']],
    'version 3': [['add', '-N', 'y']],
    'version 4': [['update-index', '--index-version', '4']],
    split: [
      ['update-index', '--split-index'],
      ['add', 'y'],
    ],
  }
  for (const [form, commands] of Object.entries(forms))
    for (const options of [[], ['--object-format=sha256']]) {
      using place = repositories(...options)
      for (const name of ['a', 'ab/c', 'z', 'not recorded']) place.make(name)
      place.git('', 'add', 'a-1', 'a', 'ab/b', 'ab/c', 'z')
      for (const command of commands) place.git('', ...command)
      assert.deepEqual(place.nested(), ['a', 'ab/c', 'z'], `${form} ${options.join()}`)
    }
})

test('of recorded repositories, those further down too, what git obeys is protected', () => {
  using place = repositories()
  for (const name of ['a', 'a/inner']) place.make(name)
  place.git('a', 'add', 'inner')
  place.git('', 'add', 'a')
  const kept = protectedIn(place.root).map(path => relative(place.root, path))
  for (const path of ['a/.git/config', 'a/.git/hooks', 'a/inner/.git/config', 'a/inner/.git/commondir'])
    assert.ok(kept.includes(path), path)
  place.git('', 'rm', '-q', '--cached', '-f', 'a')
  assert.deepEqual(place.nested(), [])
})

test('what is no index, and what ends in the middle, records nothing more', () => {
  using place = repositories()
  place.make('a')
  place.make('z')
  place.git('', 'add', 'a', 'z')
  const path = join(place.root, '.git/index')
  const whole = fs.readFileSync(path)
  for (const [bytes, found] of [
    [whole.subarray(0, 100), ['a']],
    [whole.subarray(0, 20), []],
    [Buffer.from('DIRC'), []],
    [Buffer.alloc(5000, 255), []],
    [Buffer.alloc(0), []],
  ] as const) {
    fs.writeFileSync(path, bytes)
    assert.deepEqual(place.nested(), found)
  }
  fs.rmSync(path)
  execFileSync('mkfifo', [path])
  assert.deepEqual(place.nested(), [])
})

test('a repository that came and may run programs is named once, and one that was there is not', () => {
  using place = repositories()
  place.make('own')
  place.git('own', 'config', 'core.fsmonitor', 'x')
  place.git('', 'add', 'own')
  const planted = new PlantedRepositories()
  assert.deepEqual(planted.look(place.root), [])
  place.make('plain')
  place.make('a b')
  place.git('', 'add', 'plain', 'a b')
  assert.deepEqual(planted.look(place.root), [])
  place.git('a b', 'config', 'core.fsmonitor', 'x')
  assert.deepEqual(planted.look(place.root), ['a b'])
  assert.deepEqual(planted.look(place.root), [])
  fs.writeFileSync(join(place.root, 'plain/.git/hooks/post-index-change'), '', { mode: 0o755 })
  assert.deepEqual(planted.look(place.root), ['plain'])
  fs.mkdirSync(join(place.root, 'led'))
  fs.writeFileSync(join(place.root, 'led/.git'), 'gitdir: ../elsewhere\n')
  place.make('elsewhere/.git')
  fs.renameSync(join(place.root, 'elsewhere/.git/.git'), join(place.root, 'moved'))
  fs.rmSync(join(place.root, 'elsewhere'), { recursive: true })
  fs.renameSync(join(place.root, 'moved'), join(place.root, 'elsewhere'))
  fs.appendFileSync(join(place.root, 'elsewhere/config'), '[include]\n\tpath = /x\n')
  place.git('', 'add', 'led')
  assert.deepEqual(planted.look(place.root), ['led'])
})

test('the note names repositories so that their names say nothing else', () => {
  assert.equal(
    plantedText(['sub/x', 'a\n[b]']),
    '[sandbox: the index now records sub/x, "a\\n[b]" as a repository of its own, with configuration or hooks that may run programs; the user\'s next `git status` here would run them. Take it out of the index with `git rm --cached`, or tell the user to look at it first]',
  )
})

test('only what is known to run nothing counts as harmless in a configuration', () => {
  const harmless = `[core]
	repositoryformatversion = 0
	bare = false
# a remark
[remote "origin"]
	url = https://host/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[user]
	name = A. Person
`
  assert.equal(mayRunPrograms(harmless), false)
  for (const line of [
    '[core] fsmonitor = x',
    '[core]\nfsmonitor = x',
    '[CORE]\nHooksPath=x',
    '[filter "a"]\nclean = x',
    '[alias]\nst = !x',
    '[include]\npath = x',
    '[branch "a]"]\n[core]\npager=x',
    '[user]\nname = a \\\n[core]\nfsmonitor = x',
    '[remote "a"]\nurl = ext::sh -c x',
    '[remote "a"]\nuploadpack = x',
    'bare',
  ])
    assert.equal(mayRunPrograms(harmless + line), true, line)
})

test('files that would never end, or never begin, are not read', () => {
  using place = repositories()
  const path = join(place.root, '.gitmodules')
  execFileSync('mkfifo', [path])
  assert.equal(readTextNow(path), undefined)
  assert.equal(readTextNow('/dev/zero'), undefined)
  assert.ok(protectedIn(place.root).length > 0)
})
