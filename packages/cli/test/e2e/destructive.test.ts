import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { reply } from '@dsh/harness/testing'
import type { MockRequest } from '@dsh/harness/testing'
import { bench, sessionIn } from './dsh.ts'

const gitEnv = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }
const shell = (cwd: string, command: string): string =>
  execFileSync('bash', ['-c', command], { cwd, env: gitEnv, timeout: 20_000, encoding: 'utf8' })
const bash = (command: string) => reply.toolCall('bash', { command, description: 'Do it' })

/** Every file below, its bytes and permission bits; git's own folder is another matter. */
function treeOf(folder: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(join(folder, below))) {
    const path = `${below}${name}`
    const stats = lstatSync(join(folder, path))
    if (path === '.git') continue
    if (stats.isDirectory()) Object.assign(found, treeOf(folder, `${path}/`))
    else found[path] = `${(stats.mode & 0o777).toString(8)} ${readFileSync(join(folder, path), 'latin1')}`
  }
  return found
}

/** A repository with work that was never committed: changed, untracked and ignored files, and a stale copy. */
function repository(work: string): Record<string, string> {
  mkdirSync(join(work, 'src'))
  mkdirSync(join(work, 'cache'))
  writeFileSync(join(work, '.gitignore'), '.env\ncache/\n')
  writeFileSync(join(work, 'tracked'), 'committed\n')
  writeFileSync(join(work, 'src/tracked'), 'committed\n')
  shell(work, 'git init -qb main && git config user.name me && git config user.email me@example.invalid')
  shell(work, 'git add -A && git commit -qm base && git archive HEAD --prefix=stale/ | tar x')
  writeFileSync(join(work, 'tracked'), 'changed and not committed\n')
  writeFileSync(join(work, 'src/tracked'), 'staged\n')
  shell(work, 'git add src/tracked')
  writeFileSync(join(work, 'src/new'), Buffer.from([0, 255, 13, 10]))
  writeFileSync(join(work, '.env'), 'SECRET=1\n', { mode: 0o600 })
  writeFileSync(join(work, 'cache/data'), 'ignored and small\n')
  return treeOf(work)
}

/** A PATH with all programs but one. */
function pathWithout(root: string, program: string): string {
  const folder = join(root, 'bin')
  mkdirSync(folder)
  for (const each of (process.env['PATH'] ?? '').split(':').toReversed())
    for (const name of existsSync(each) ? readdirSync(each) : [])
      if (name !== program) {
        rmSync(join(folder, name), { force: true })
        symlinkSync(join(each, name), join(folder, name))
      }
  return folder
}

function resultIn(request: MockRequest | undefined): string {
  const messages = request?.body['messages'] as readonly { role: string; content: string }[]
  return messages.findLast(({ role }) => role === 'tool')?.content ?? ''
}

/** The result of the only command, as the model saw it. */
async function runOne(t: TestContext, command: string, options: readonly string[] = ['--yes']) {
  const place = bench(t)
  const { work, dsh, provider } = place
  const before = repository(work)
  const { requests } = await provider({
    script: [bash(command), reply.text('ok')],
    fallback: reply.text('ok'),
  })
  const { code, stderr } = await dsh(['run', ...options, 'go'])
  const result = resultIn(requests[1])
  return { ...place, before, code, stderr, result, id: sessionIn(stderr) }
}

const destructions = [
  'git reset -q --hard',
  'git clean -qfdX',
  'git clean -qfdx',
  'git checkout -q .',
  'git checkout -q HEAD -- tracked src',
  'git restore --staged --worktree .',
  'rm -rf ./* .env .gitignore',
  'rm -rf *; rm -f .env',
  'rm -r src cache && rm .env',
  'find . -type f -not -path "./.git/*" -name "*" -delete',
  'mv src/new tracked',
  'cp src/new .env',
  ': > tracked; echo x > .env',
  'cat /dev/null | tee .env cache/data',
  'truncate -s 0 .env',
  'dd if=/dev/null of=.env status=none',
  'cp -r stale/. .',
  'bash -c "cd cache && rm data"; eval "rm .env"',
  'timeout 5 xargs rm <<< ".env tracked"',
  'git stash -q && git stash drop -q',
]

for (const command of destructions) {
  test(`what is lost by "${command}" comes back byte for byte`, async t => {
    const { work, before, result, id, dsh, stderr } = await runOne(t, command)
    assert.notDeepEqual(treeOf(work), before, stderr)
    const seq = new RegExp(`\\[the files before this call are kept: dsh rewind ${id} (\\d+) --files`).exec(
      result,
    )?.[1]
    assert.ok(seq, result)
    const back = await dsh(['rewind', id, seq, '--files', '--yes'])
    assert.equal(back.code, 0, back.stderr)
    assert.deepEqual(treeOf(work), before)
  })
}

const lostForGood = [
  [
    'rm -rf .git',
    /it would destroy the history of a git repository, which no restore point holds: \S+\/work\/\.git/,
  ],
  ['rm large', /it would destroy files that are too large for a restore point: large/],
  ['git push -qf ../other HEAD:main', /it would destroy commits of another repository/],
  ['git gc -q --prune=now', /git would forget for good what it could still bring back/],
] as const

for (const [command, reason] of lostForGood) {
  test(`"${command}" is refused where nobody can be asked, and told of in full-access mode`, async t => {
    const place = bench(t)
    const { work, root, dsh, provider } = place
    repository(work)
    mkdirSync(join(root, 'other'))
    shell(join(root, 'other'), 'git init -q --bare .')
    writeFileSync(join(work, 'large'), Buffer.alloc(11 * 1024 * 1024))
    const { requests } = await provider({
      script: [bash(command), reply.text('ok'), bash(command)],
      fallback: reply.text('ok'),
    })
    const before = treeOf(work)
    await dsh(['run', '--yes', 'go'])
    const refused = resultIn(requests[1])
    assert.match(refused, reason)
    assert.match(refused, /; a person has to allow this call$/)
    assert.deepEqual(treeOf(work), before)
    assert.ok(existsSync(join(work, '.git/HEAD')) && existsSync(join(root, 'other')))
    await dsh(['run', '--yes', '--permission', 'full-access', 'go'])
    assert.match(resultIn(requests[3]), new RegExp(`\\[not kept: ${reason.source}`))
  })
}

test('commits whose name went are told by their number', async t => {
  const place = bench(t)
  const { work, dsh, provider, id } = {
    ...place,
    id: (name: string) => shell(place.work, `git rev-parse ${name}`).trim(),
  }
  repository(work)
  shell(work, 'git stash -q && git branch -q old && git tag v1 && git commit -q --allow-empty -m later')
  const [stash, old, head] = ['stash', 'old', 'HEAD'].map(id)
  const command = 'git stash drop -q; git branch -qD old; git tag -d v1; git reset -q HEAD~1'
  const { requests } = await provider({
    script: [bash(command), reply.text('ok')],
    fallback: reply.text('ok'),
  })
  await dsh(['run', '--yes', 'go'])
  const lines = resultIn(requests[1])
    .split('\n')
    .filter(line => line.startsWith('[git:'))
  assert.deepEqual(lines, [
    `[git: a stash was dropped: git stash store ${stash} brings it back]`,
    `[git: branch old was ${old}: git branch -f old ${old} brings it back]`,
    `[git: tag v1 was ${old}: git tag -f v1 ${old} brings it back]`,
    `[git: HEAD was ${head}: git branch NAME ${head} keeps it]`,
  ])
  shell(work, `git stash store ${stash} && git branch -f old ${old}`)
  assert.deepEqual(['stash', 'old'].map(id), [stash, old])
})

test('where no restore point can be taken a command that destroys is refused with the reason', async t => {
  const { work, root, dsh, provider, env } = bench(t)
  writeFileSync(join(work, 'file'), 'only here\n')
  env['PATH'] = pathWithout(root, 'git')
  const { requests } = await provider({
    script: [bash('rm file'), reply.text('ok')],
    fallback: reply.text('ok'),
  })
  await dsh(['run', '--yes', 'go'])
  assert.match(
    resultIn(requests[1]),
    /it would destroy files, and no restore point can be taken: .*git.*; a person has to allow this call$/,
  )
  assert.equal(readFileSync(join(work, 'file'), 'utf8'), 'only here\n')
})

test('what destroys nothing that is there says nothing', async t => {
  const { result } = await runOne(
    t,
    'rm -f none; echo x > fresh; git checkout -qb topic; git commit -qm staged; git stash list',
  )
  assert.equal(result, '(no output)')
})

test('what lies outside of the workspace is out of reach, or its loss is told of in full-access mode', async t => {
  const { work, root, dsh, provider } = bench(t)
  mkdirSync(join(root, 'other'))
  writeFileSync(join(root, 'other/file'), 'x')
  const lose = bash('rm -rf ../other')
  const { requests } = await provider({ script: [lose, reply.text('ok'), lose], fallback: reply.text('ok') })
  await dsh(['run', '--yes', 'go'])
  assert.ok(existsSync(join(root, 'other/file')), work)
  await dsh(['run', '--yes', '--permission', 'full-access', 'go'])
  assert.match(
    resultIn(requests[3]),
    /\n\[not kept: it would destroy what lies outside of the workspace, where no restore point is taken: \S+\/other\]$/,
  )
})
