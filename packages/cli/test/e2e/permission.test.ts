import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { reply } from '@dsh/harness/testing'
import { bench, bin, sessionIn } from './dsh.ts'

function setup(t: TestContext) {
  const { dsh, work, home, root, env, provider } = bench(t)
  const permission = async (...words: string[]) => await dsh(['permission', ...words])
  const said = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await permission(...words)
    assert.deepEqual([code, stderr], [0, ''], words.join(' '))
    return stdout
  }
  return { dsh, work, home, root, env, provider, permission, said, path: join(home, 'permissions.json') }
}

test('rules are added for a folder or everywhere, listed, and taken away', async t => {
  const { said, permission, work, root, path } = setup(t)
  mkdirSync(join(root, 'data'))
  symlinkSync(join(root, 'data'), join(work, 'link'))
  assert.match((await permission('ls')).stderr, /^no rules in .*permissions\.json\n$/)
  const lines = [
    await said('allow', '--access', 'network', '--', 'git', 'push', '--tags'),
    await said('allow', '--access', 'full-access', '--exact', 'make  "all"'),
    await said('ask', '--write', 'link', '--everywhere'),
    await said('allow', '--host', 'https://Example.org/docs'),
    await said('deny', '--host', '*.example.org:81', '-C', root),
    await said('deny', '--foreign', 'db/drop'),
  ]
  assert.deepEqual(lines, [
    `r1   allow git push --tags …, with the network, in ${work}\n`,
    `r2   allow make all, without a sandbox, in ${work}\n`,
    `r3   ask write ${root}/data/, everywhere\n`,
    `r4   allow fetch from example.org, in ${work}\n`,
    `r5   deny fetch from *.example.org:81, in ${root}\n`,
    `r6   deny db/drop, in ${work}\n`,
  ])
  assert.equal(await said('ls'), lines.join(''))
  assert.equal(await said('deny', '--foreign', 'db/drop'), lines[5], 'it is there already')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal((await permission('rm', 'r2', 'r3')).stderr, `removed ${lines[1]}removed ${lines[2]}`)
  assert.deepEqual(JSON.parse((await said('ls', '--json')).split('\n')[1] ?? ''), {
    id: 'r4',
    effect: 'allow',
    kind: 'fetch',
    host: 'example.org',
    folder: work,
  })
})

test('what a person types and cannot be meant is refused with what mends it', async t => {
  const { permission } = setup(t)
  const wrong: [string[], string][] = [
    [
      ['allow', 'git', 'push'],
      'error MISSING_OPTION: a rule that allows a command needs --access: in the sandbox it runs anyway\n  dsh permission allow --access workspace-write|network|full-access -- git push\n',
    ],
    [
      ['allow', '--access', 'net', 'git'],
      'error UNKNOWN_ACCESS: there is no access "net"\n  dsh permission allow --access workspace-write|network|full-access -- git\n',
    ],
    [
      ['deny'],
      'error MISSING_WORD: dsh permission deny needs WORDS, --write, --host or --foreign\n  dsh permission deny --help\n',
    ],
    [
      ['deny', 'rm', '--write', 'x'],
      'error OPTION_CONFLICT: one rule speaks of one thing, found WORDS and --write\n  dsh permission deny --help\n',
    ],
    [
      ['deny', 'a && b'],
      'error NOT_ONE_COMMAND: "a && b" is not the plain beginning of one command\n  dsh permission deny --help\n',
    ],
    [['deny', '--host', 'a b'], 'error INVALID_RULE: host: "a b" is no host\n  dsh permission deny --help\n'],
    [
      ['deny', 'git', 'push', '--force'],
      'error UNKNOWN_OPTION: dsh permission deny has no option --force\n  dsh permission deny --help\n',
    ],
    [['rm', 'r1'], 'error UNKNOWN_RULE: there is no rule "r1"\n  dsh permission ls\n'],
    [['rm'], 'error MISSING_WORD: dsh permission rm needs RULE\n  dsh permission rm RULE\n'],
    [['why'], 'error MISSING_WORD: dsh permission why needs COMMAND\n  dsh permission why --help\n'],
    [
      ['why', '--tool', 'wrte', 'x'],
      'error UNKNOWN_TOOL: there is no tool "wrte"; did you mean "write"?\n  dsh permission why --help\n',
    ],
    [
      ['why', '--session', 'nope', 'ls'],
      'error UNKNOWN_SESSION: no session begins with "nope"\n  dsh session ls\n',
    ],
    [
      ['alow'],
      'error UNKNOWN_ACTION: dsh permission does ls, why, allow, ask, deny or rm; found "alow"; did you mean "allow"?\n  dsh permission --help\n',
    ],
  ]
  for (const [words, text] of wrong) {
    const { code, stdout, stderr } = await permission(...words)
    assert.deepEqual([code, stdout, stderr], [2, '', text], words.join(' '))
  }
})

test('what would become of a call is said with its reason, and nothing runs', async t => {
  const { said, work, root } = setup(t)
  await said('deny', 'rm', '--everywhere')
  await said('allow', '--access', 'network', 'git', 'push')
  const first = async (...words: string[]) => (await said('why', ...words)).split('\n').slice(0, 2)
  assert.deepEqual(await first('ls && rm -rf made'), [
    'deny: rule r1 denies `rm …`: `rm -rf made`; do it another way or tell the user',
    '  r1: deny rm …, everywhere',
  ])
  assert.deepEqual(await first('--access', 'network', 'git', 'push', 'origin'), [
    'allow: rule r2 allows `git push …, with the network`',
    `  r2: allow git push …, with the network, in ${work}`,
  ])
  assert.equal(
    (await first('--access', 'network', 'git push; curl x'))[0]?.startsWith('ask: it wants the network'),
    true,
  )
  assert.deepEqual(
    (await first('--tool', 'write', '../x'))[0],
    `ask: ${root}/x is outside of the workspace ${work}`,
  )
  assert.deepEqual((await first('--tool', 'edit', 'a'))[0], 'allow: workspace-write lets it be written')
  assert.equal((await first('git', 'push', '--json', '-f'))[0], 'allow: it runs in the sandbox')
  const explanation = JSON.parse(await said('why', '--json', '--tool', 'write', '.envrc')) as Record<
    string,
    unknown
  >
  assert.deepEqual([explanation['decision'], explanation['mode']], ['ask', 'workspace-write'])
})

test('a session is judged by its own mode and grants', async t => {
  const { said, provider, dsh } = setup(t)
  await provider({ script: [reply.text('ok')] })
  const session = sessionIn((await dsh(['run', '--permission', 'read-only', 'go'])).stderr)
  assert.equal(
    (await said('why', '--session', session, '--tool', 'write', 'a')).split('\n')[0],
    'deny: writing is refused in read-only mode; tell the user what you would do',
  )
  assert.equal(
    (await dsh(['permission', 'ls', '--session', session])).stderr,
    `nothing was allowed for session ${session}\n`,
  )
})

const bubblewrap = '/usr/bin/bwrap'
const skip = !existsSync(bubblewrap) && process.env['CI'] !== 'true'

test(
  'where no sandbox works that is said once, and what may do more than read is not run',
  { skip },
  async t => {
    const { provider, work, env, said } = setup(t)
    const call = (command: string) => reply.toolCall('bash', { command, description: 'x' })
    await provider({
      script: [call('ls'), call('touch a'), call('touch b'), call('touch c'), reply.text('no')],
    })
    await said('allow', '--access', 'full-access', 'touch', 'b')
    // The same machine without the program that confines.
    const hidden = ['--dev-bind', '/', '/', '--ro-bind', '/dev/null', bubblewrap]
    const options = { cwd: work, env, timeout: 60_000, killSignal: 'SIGKILL', encoding: 'utf8' } as const
    const child = promisify(execFile)(bubblewrap, [...hidden, process.execPath, bin, 'run', 'go'], options)
    const { code, stdout, stderr } = await child.then(
      () => assert.fail('it was not denied'),
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    )
    assert.deepEqual([code, stdout], [4, 'no\n'])
    const notes = stderr.split('\n').filter(line => line.startsWith('note: no sandbox'))
    assert.equal(notes.length, 1)
    assert.match(
      notes[0] ?? '',
      /^note: no sandbox works here, so commands that may do more than read are refused: /,
    )
    assert.deepEqual(readdirSync(work), ['b'])
  },
)

test('a model cannot give itself rules, from the shell or with a file tool, though they lie in its folder', async t => {
  const { dsh, provider, root, path, said } = setup(t)
  await said('deny', 'rm', '--everywhere')
  const before = readFileSync(path, 'utf8')
  const own = '{"version":1,"revision":9,"rules":[]}'
  const script = `echo '${own}' > user/.dsh/permissions.json; unlink user/.dsh/permissions.json; mv user/.dsh user/x`
  await provider({
    script: [
      reply.toolCall('bash', { command: script, description: 'x' }),
      reply.toolCall('write', { file_path: path, content: own }),
      reply.toolCall('write', { file_path: 'user/.dsh/permissions.json', content: own }),
      reply.text('done'),
    ],
  })
  const { code, stderr } = await dsh(['run', '--yes', '-C', root, 'go'])
  assert.equal(code, 4, stderr)
  assert.equal(readFileSync(path, 'utf8'), before)
})

test('a broken file allows nothing, stops nothing, is told where it matters, and is never written over', async t => {
  const { permission, dsh, provider, home, path } = setup(t)
  mkdirSync(home, { recursive: true })
  writeFileSync(path, '{"version":1,"rules":')
  await provider({ fallback: reply.text('done') })
  const told = /permissions\.json" counts for nothing: it is no JSON: .*; mend or remove it/
  const added = await permission('deny', 'rm')
  assert.equal(added.code, 1)
  assert.match(
    added.stderr,
    /\nerror PERMISSIONS_BROKEN: .*\n {2}edit .*permissions\.json, or move it away\n$/,
  )
  assert.match((await permission('ls')).stderr, told)
  assert.equal((await dsh(['run', 'go'])).stdout, 'done\n')
  assert.match((await dsh(['doctor'])).stdout, told)
  assert.equal(readFileSync(path, 'utf8'), '{"version":1,"rules":')
})

test('a broken rule is told in the run in which it would have counted', async t => {
  const { dsh, provider, home, path } = setup(t)
  mkdirSync(home, { recursive: true })
  writeFileSync(path, '{"version":1,"revision":1,"rules":[{"id":"r1","effect":"never"}]}')
  const write = reply.toolCall('write', { file_path: 'a', content: '' })
  await provider({ script: [write, write, reply.text('done')] })
  const { stderr } = await dsh(['run', 'go'])
  const notes = stderr.split('\n').filter(line => line.includes('counts for nothing'))
  assert.equal(notes.length, 1)
  assert.match(
    notes[0] ?? '',
    /^note: plugin "approval" failed \(permission rules\): rule 1 of ".*permissions\.json" counts for nothing: effect: "never" is none of allow, ask, deny; mend or remove it$/,
  )
})
