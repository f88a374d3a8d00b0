import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { readGitConfig } from './git-config.ts'
import { protectedIn } from './protect.ts'

function workspace(files: Readonly<Record<string, string>>) {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-protect-')))
  for (const [path, text] of Object.entries(files)) {
    fs.mkdirSync(dirname(join(root, path)), { recursive: true })
    fs.writeFileSync(join(root, path), text)
  }
  return {
    root,
    paths: (folder = root) => protectedIn(folder).map(path => path.slice(folder.length + 1)),
    [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}

const always = ['.dsh', '.vscode', '.idea', '.envrc', '.claude', '.codex']
const ofGit = ['.git/hooks', '.git/config', '.git/commondir']

test('names are protected whether or not anything has them, .git among them', () => {
  using place = workspace({})
  assert.deepEqual(place.paths(), [...always, '.git'])
})

test('of a repository what git runs, and what tells it to', () => {
  using place = workspace({ '.git/HEAD': '', '.git/config': '[core]\n\tbare = false\n' })
  assert.deepEqual(place.paths(), [...always, ...ofGit])
})

test('a .git that is no repository yet is protected as a whole', () => {
  using place = workspace({ '.git/.gitignore': '' })
  assert.deepEqual(place.paths(), [...always, '.git'])
})

test('submodules, work trees, and files that the configuration names, where they lie in the workspace', () => {
  using place = workspace({
    '.git/HEAD': '',
    '.git/config': `[core]
	hooksPath = .husky/_ ; of husky
[include] path = ../team.gitconfig
[includeIf "gitdir:~/x/"]
	path = "/home/u/own"
[extensions]
	worktreeConfig = true
`,
    '.git/modules/sub/config': '',
    '.git/worktrees/w/HEAD': '',
    '.gitmodules':
      '[submodule "a"]\n\tpath = sub\n[submodule "b"]\n\tpath = gone\n[submodule "c"]\n\tpath = ../out\n',
    'sub/.git': 'gitdir: ../.git/modules/sub',
  })
  assert.deepEqual(place.paths(), [
    ...always,
    ...ofGit,
    '.git/modules',
    '.git/worktrees',
    '.git/config.worktree',
    'team.gitconfig',
    '.husky',
    'sub/.git',
  ])
})

test('a .git that is a file is protected, and the repository it names where that lies in the workspace', () => {
  using place = workspace({
    '.git': 'gitdir: store/worktrees/w\n',
    'store/worktrees/w/commondir': '../..\n',
    'store/config': '',
  })
  assert.deepEqual(place.paths(), [
    ...always,
    '.git',
    ...['hooks', 'config', 'commondir'].map(name => `store/worktrees/w/${name}`),
    ...['hooks', 'config', 'commondir', 'worktrees'].map(name => `store/${name}`),
  ])
  assert.deepEqual(place.paths(join(place.root, 'store/worktrees')), [...always, '.git'])
})

test('a configuration of git is read as git reads it', () => {
  assert.deepEqual(readGitConfig('[CORE]\nHooksPath="a b" # c\n[remote "x"]\npath = no\n[core "sub"]'), {
    hooksPath: 'a b',
    includes: [],
    hasWorktreeFile: false,
  })
  assert.equal(readGitConfig('[extensions]\nworktreeConfig = off').hasWorktreeFile, false)
})
