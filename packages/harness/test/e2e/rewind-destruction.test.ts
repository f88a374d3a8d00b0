import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openPlace, seqOf, treeOf } from './rewind-place.ts'

const destructions = [
  'git reset -q --hard',
  'git checkout -q .',
  'git clean -qfd',
  'git clean -qfdX',
  'git stash -qu && git stash drop -q',
  'git reset -q --hard && git clean -qfdx',
  'mv untracked tracked',
  ': > tracked; : > folder/untracked',
  'cp -R folder/. . && rm -r folder',
  'find . -type f -not -path "./.git/*" -delete',
  'rm -rf ./* .[!.]*',
]

const environment = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }

function shell(cwd: string, command: string): void {
  execFileSync('bash', ['-c', command], { cwd, env: environment, timeout: 20_000, stdio: 'pipe' })
}

/** The files that a point covers: not git's own, and not what the rules of the workspace leave out. */
function covered(workspace: string): Record<string, string> {
  const entries = Object.entries(treeOf(workspace))
  return Object.fromEntries(entries.filter(([name]) => !/^\.git(\/|$)|\.out$/.test(name)))
}

for (const command of destructions) {
  test(`work that was never committed comes back after: ${command}`, async t => {
    const { ctx, agent, turn, at, workspace } = await openPlace(t)
    mkdirSync(at('folder'))
    writeFileSync(at('.gitignore'), '*.out\n')
    writeFileSync(at('tracked'), 'committed\n')
    writeFileSync(at('folder/tracked'), 'committed\n')
    const user = '-c user.name=me -c user.email=me@example.invalid'
    shell(workspace, `git init -q && git add -A && git ${user} commit -qm base`)
    shell(workspace, 'git config user.name me && git config user.email me@example.invalid')
    writeFileSync(at('tracked'), 'changed and not committed\n')
    writeFileSync(at('untracked'), 'never added\n')
    writeFileSync(at('folder/untracked'), Buffer.from([0, 255, 10, 13]))
    writeFileSync(at('made.out'), 'left out by a rule\n')
    const before = covered(workspace)
    await turn(() => shell(workspace, command))
    const isHarmless = command.endsWith('X')
    assert.equal(JSON.stringify(covered(workspace)) === JSON.stringify(before), isHarmless)
    const to = seqOf(agent.session, 'user/message')
    await ctx.rewind.apply(agent.session, to, { scope: 'files' })
    assert.deepEqual(covered(workspace), before)
  })
}
