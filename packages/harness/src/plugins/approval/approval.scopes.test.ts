import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { Session } from '../../core/session/index.ts'
import { allowed, createWorld } from './approval.world.test.ts'
import type { ApprovalAnswer, PermissionRule } from './index.ts'

const push: PermissionRule = { effect: 'allow', kind: 'command', prefix: ['git', 'push'], access: 'network' }
const notAnswered = 'Error: this call needs an approval, but nobody is there to give it'

test('a question names the whole call, and offers what may be allowed beyond it', async () => {
  await using world = await createWorld()
  world.answer(allowed)
  const command = 'cd x && git push origin main'
  await world.bash(command, { wants: 'network' })
  const [question] = world.questions
  assert.ok(question)
  const { id, digest, signal, agent, ...rest } = question
  assert.ok(id !== '' && digest !== '' && signal instanceof AbortSignal && agent === world.agent)
  assert.deepEqual(rest, {
    toolName: 'bash',
    callId: 'c1',
    reason: 'it wants the network: to see; not covered: `git push origin main`',
    arguments: { command, wants: 'network' },
    view: { card: 'terminal', title: 'a command', data: { command } },
    proposals: [{ text: 'git push …, with the network', rules: [push] }],
  })
})

test('what is offered covers no more than it says', async () => {
  await using world = await createWorld()
  const { base } = world
  world.answer(allowed)
  const offered = async (call: () => Promise<string>): Promise<readonly string[]> => {
    world.questions.length = 0
    await call()
    return world.questions[0]?.proposals.map(({ text }) => text) ?? assert.fail('nobody was asked')
  }
  const bash = (command: string) => offered(() => world.bash(command, { wants: 'full-access' }))
  assert.deepEqual(await bash('npm run build && npm test'), [
    'npm run build …, without a sandbox; npm test …, without a sandbox',
  ])
  assert.deepEqual(await bash('rm -rf build'), ['rm -rf build, without a sandbox'])
  for (const command of [
    'rm -rf $X',
    'PATH=. git push',
    'git log > /etc/x',
    'npm test; $(cat x)',
    'echo hi (',
  ])
    assert.deepEqual(await bash(command), [], command)
  assert.deepEqual(await offered(() => world.write('../a/b')), [`write ${base}/a/b`, `write ${base}/a/`])
  assert.deepEqual(await offered(() => world.write('../a/.git/hooks/x')), [`write ${base}/a/.git/hooks/x`])
  assert.deepEqual(await offered(() => world.write('../a/.envrc')), [`write ${base}/a/.envrc`])
  assert.deepEqual(
    await offered(() => world.write('../above')),
    [`write ${base}/above`],
    'the workspace lies beside it',
  )
  assert.deepEqual(await offered(() => world.write('.git/config')), [`write ${world.dir}/.git/config`])
  assert.deepEqual(await offered(() => world.call('fetch', { url: 'https://example.org:81/a?b' })), [
    'fetch from example.org:81',
  ])
  assert.deepEqual(await offered(() => world.call('server', { what: 'db/drop' })), ['db/drop'])
})

test('what is allowed for the session counts for it and its forks, also when they are resumed, until it is forgotten', async () => {
  await using world = await createWorld()
  const { session } = world.agent
  const stop = world.answer(async () => ({ outcome: 'allowed-once', scope: 'session' }))
  assert.equal(await world.bash('git push', { wants: 'network' }), 'ran')
  stop()
  assert.equal(await world.bash('git push --tags', { wants: 'network' }), 'ran')
  assert.deepEqual(world.ran, ['git push [network]', 'git push --tags [network]'])
  assert.deepEqual(world.events().at(-1), {
    type: 'approval/decided',
    outcome: 'allowed-once',
    scope: 'session',
    rules: [push],
  })
  const copy = Session.create(SessionId('copy'), session.events)
  assert.deepEqual(world.ctx.approval.grantsOf(copy), [push])
  const other = await world.agentIn(world.dir, 'other')
  assert.match(await world.bash('git push', { wants: 'network', by: other }), /nobody is there/)
  assert.match(await world.bash('git push', { wants: 'full-access' }), /nobody is there/)
  assert.equal(fs.existsSync(world.rules), false)
  world.ctx.approval.forget(session)
  world.ctx.approval.forget(session)
  assert.equal(world.events().filter(({ type }) => type === 'approval/forgotten').length, 1)
  assert.match(await world.bash('git push', { wants: 'network' }), /nobody is there/)
})

test('a rule counts for the folder it was given in, in later sessions too', async () => {
  await using world = await createWorld()
  const stop = world.answer(async () => ({ outcome: 'allowed-once', scope: 'rule', proposal: 1 }))
  assert.match(await world.write('../a/b'), /^Created/)
  stop()
  const rule = { effect: 'allow', kind: 'write', path: `${world.base}/a/`, folder: world.dir }
  assert.deepEqual(world.events().at(-1), {
    type: 'approval/decided',
    outcome: 'allowed-once',
    scope: 'rule',
    rules: [rule],
  })
  assert.deepEqual((await world.ctx.approval.rules()).rules, [{ id: 'r1', rule }])
  const later = await world.agentIn(world.dir, 'later')
  assert.match(await world.write('../a/c', { by: later }), /^Created/)
  assert.match(
    await world.write('../a/.envrc', { by: later }),
    /nobody is there/,
    'what configures is not in a folder',
  )
  fs.mkdirSync(join(world.base, 'elsewhere'))
  const elsewhere = await world.agentIn(join(world.base, 'elsewhere'), 'elsewhere')
  assert.match(await world.write('../a/d', { by: elsewhere }), /nobody is there/)
  await world.ctx.approval.removeRules(['r1'])
  assert.match(await world.write('../a/e', { by: later }), /nobody is there/)
})

test('what belongs to this program itself is asked for each time, whatever was allowed', async () => {
  await using world = await createWorld()
  const { base, rules } = world
  await world.ctx.approval.addRules([
    { effect: 'allow', kind: 'write', path: `${base}/` },
    { effect: 'allow', kind: 'write', path: rules },
  ])
  world.answer(async () => ({ outcome: 'allowed-once', scope: 'session' }))
  assert.match(await world.write(rules), /not offered/)
  assert.equal(world.questions[0]?.reason, `${rules} belongs to dsh itself`)
  assert.deepEqual(world.questions[0]?.proposals, [])
  assert.match(await world.write(`${base}/other`), /^Created/)
})

test('a rule that cannot be kept counts for the session, and the person is told', async () => {
  await using world = await createWorld()
  fs.mkdirSync(join(world.base, 'home'))
  fs.writeFileSync(world.rules, 'not json')
  world.answer(async () => ({ outcome: 'allowed-once', scope: 'rule' }))
  assert.equal(await world.call('server', { what: 'x' }), 'ran')
  assert.equal((world.events().at(-1) as { scope?: string }).scope, 'session')
  assert.equal(fs.readFileSync(world.rules, 'utf8'), 'not json')
  assert.equal(world.problems.length, 2, 'once when it was read, once when it could not be written')
  assert.match(
    world.problems[0] ?? '',
    /permissions\.json" counts for nothing: it is no JSON: .*; mend or remove it$/,
  )
})

test('an answer that chooses what was not offered allows nothing', async () => {
  const answers: ApprovalAnswer[] = [
    { outcome: 'allowed-once', scope: 'rule', proposal: 1 },
    { outcome: 'allowed-once', scope: 'session', proposal: -1 },
    { outcome: 'allowed-once', scope: 'always' as never },
  ]
  for (const answer of answers) {
    await using world = await createWorld()
    world.answer(async () => answer)
    assert.equal(
      await world.call('server', { what: 'x' }),
      `${notAnswered}: the answer chose what was not offered`,
    )
    assert.deepEqual(world.ran, [])
  }
})

test('where another listener asks, nothing is offered that would not keep it from asking again', async () => {
  await using world = await createWorld({
    filed: [{ effect: 'ask', kind: 'command', prefix: ['git', 'push'] }],
  })
  world.answer(async () => ({ outcome: 'allowed-once', scope: 'session' }))
  assert.match(await world.bash('git push'), /not offered/)
  world.ctx.on('tools/pre-execute', async () => ({ kind: 'ask', reason: 'a hook' }))
  assert.match(await world.call('other', { command: 'x' }), /not offered/)
})

test('a rule that denies is stronger than one that asks, and that one than one that allows; denial holds in every mode', async () => {
  const rules = (['allow', 'ask', 'deny'] as const).map(
    effect => ({ effect, kind: 'fetch', host: 'x.org' }) as const,
  )
  for (const mode of ['read-only', 'workspace-write', 'full-access'] as const) {
    await using world = await createWorld({ mode, yes: true })
    const fetch = () => world.call('fetch', { url: 'https://x.org/' })
    await world.ctx.approval.addRules(rules)
    assert.equal(
      await fetch(),
      'Error: rule r3 denies `fetch from x.org`; do it another way or tell the user',
    )
    await world.ctx.approval.removeRules(['r3'])
    assert.equal(await fetch(), 'ran')
    assert.match(
      String((world.events()[0] as { reason?: string }).reason),
      /^rule r2 asks for `fetch from x.org`$/,
    )
    await world.ctx.approval.removeRules(['r2'])
    assert.equal(await fetch(), 'ran')
    assert.equal(world.events().length, 2, 'only the rule that asks was asked for')
  }
})

test('a host that is denied stays so at any port, with a dot at the end, and where www leads to it', async () => {
  const hosts = ['x.org', 'www.y.org', '*.z.org', 'p.org:8080']
  const filed = hosts.map((host): PermissionRule => ({ effect: 'deny', kind: 'fetch', host }))
  await using world = await createWorld({ mode: 'full-access', filed })
  const fetch = (host: string) => world.call('fetch', { url: `https://${host}/` })
  for (const host of [
    'x.org',
    'X.org.',
    'x.org:8443',
    'x.org.:8443',
    'www.x.org',
    'y.org',
    'www.z.org',
    'a.b.z.org.:8080',
    'p.org:8080',
  ])
    assert.match(await fetch(host), /^Error: rule r\d denies/, host)
  for (const host of ['ax.org', 'x.org.net', 'a.x.org', 'z.org', 'p.org', 'p.org:8443'])
    assert.equal(await fetch(host), 'ran', host)
})

test('what is denied stays so with a path, options and wrappers around it, and where nobody can tell', async () => {
  const filed: readonly PermissionRule[] = [
    { effect: 'deny', kind: 'command', prefix: ['git', 'push'] },
    { effect: 'deny', kind: 'write', path: '/srv/kept' },
    { effect: 'deny', kind: 'command', prefix: ['rm', '-rf', '--no-preserve-root'] },
  ]
  await using world = await createWorld({ mode: 'full-access', filed })
  for (const command of [
    'git push',
    '/usr/bin/git -C x --no-pager push origin',
    'ls && (sudo git push)',
    'env A=1 timeout 5 git push',
    "bash -c 'git push'",
    'echo $(git push)',
    'bash <<< "git push"',
  ])
    assert.match(await world.bash(command), /^Error: rule r1 denies `git push …`: /, command)
  for (const command of [
    '$TOOL push',
    'git $WHAT',
    'eval "$X"',
    'echo hi (',
    "env -S 'git push'",
    'env --chdir=x git push',
    'sudo --preserve-env=A git push',
    'timeout --kill=5 9 git push',
    "bash -O extglob -c 'git push'",
    'ssh host git push',
    'taskset 1 /usr/bin/git -v push',
    'git -c alias.x=push x',
    'unshare -r git push',
  ])
    assert.match(
      await world.bash(command),
      /cannot be told, and rule r1 denies `git push …`; write the command out$/,
      command,
    )
  assert.match(await world.bash('echo x >> /srv/kept/a'), /^Error: rule r2 denies `write \/srv\/kept`/)
  assert.match(await world.write('/srv/kept/a'), /^Error: rule r2 denies/)
  for (const command of ['rm -f / -r --no-preserve-root', 'rm --no-preserve-root=all -xfr /'])
    assert.match(await world.bash(command), /^Error: rule r3 denies/, command)
  assert.match(await world.bash('rm -rf --no-preserve x'), /^Error: rule r3 denies/)
  for (const command of [
    'rm -rf build',
    'git commit -m push',
    'git log',
    'echo git push',
    'command -v git',
    'bash build.sh git',
    'timeout --kill=5 9 git log',
    'git -c user.name=a commit -m push',
  ])
    assert.equal(await world.bash(command), 'ran', command)
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'workspace-write')
  world.answer(allowed)
  assert.equal(await world.bash('$TOOL push'), 'ran')
  assert.equal(
    world.questions[0]?.reason,
    'what `$TOOL push` runs cannot be told, and rule r1 denies `git push …`',
  )
})

test('a rule that allows reaches as far as it says and no further', async () => {
  await using world = await createWorld({ confines: false, filed: [push] })
  assert.match(
    await world.bash('git push'),
    /nobody is there/,
    'without a sandbox it would have more than the network',
  )
  await world.ctx.approval.addRules([
    { effect: 'allow', kind: 'command', prefix: ['make', 'all'], access: 'full-access' },
  ])
  assert.equal(await world.bash('make all'), 'ran')
  for (const command of [
    'make',
    'make all; make clean',
    'make all > out',
    'CFLAGS=-x make all',
    './make all',
    '[[ $X -eq 1 ]] && make all',
  ])
    assert.match(await world.bash(command), /nobody is there/, command)
  assert.deepEqual(world.ran, ['make all [full-access]'])
})

test('a replacement is a refusal that tells the model what to call instead', async () => {
  await using world = await createWorld()
  world.answer(async () => ({ outcome: 'rejected', replacement: 'npm ci --ignore-scripts' }))
  const call = { command: 'npm ci', wants: 'network' }
  assert.equal(
    await world.call('bash', call),
    'Error: the user rejected this call: call it again as `npm ci --ignore-scripts`',
  )
  assert.deepEqual(world.ran, [])
  assert.deepEqual(world.questions[0]?.arguments, call)
})

test('a refusal reaches the model with its reason, and nothing runs', async () => {
  await using world = await createWorld()
  world.answer(async () => ({ outcome: 'rejected', reason: 'use npm' }))
  assert.equal(await world.call('server', { what: 'x' }), 'Error: the user rejected this call: use npm')
  assert.deepEqual(world.ran, [])
  assert.deepEqual(world.events().at(-1), {
    type: 'approval/decided',
    outcome: 'rejected',
    reason: 'use npm',
  })
})

test('where nobody answers, or not in a way that can be understood, the call is refused', async () => {
  const answers: (() => Promise<unknown>)[] = [
    async () => ({ outcome: 'yes' }),
    async () => 'allowed-once',
    async () => ({}),
    async () => Promise.reject(new Error('broken')),
  ]
  for (const answer of answers) {
    await using world = await createWorld()
    world.answer(answer as () => Promise<ApprovalAnswer>)
    assert.equal(await world.call('server', { what: 'x' }), notAnswered)
    assert.deepEqual(world.events().at(-1), { type: 'approval/decided', outcome: 'unavailable' })
    assert.deepEqual(world.ran, [])
  }
})

test('the first answer counts, and one who cannot answer passes the question on', async () => {
  await using world = await createWorld()
  world.answer(async () => undefined)
  world.answer(allowed)
  world.answer(async () => assert.fail('not asked any more'))
  assert.equal(await world.call('server', { what: 'x' }), 'ran')
})

test('an answer to another question or to other arguments allows nothing', async () => {
  await using world = await createWorld()
  let first: { readonly id: string; readonly digest: string } | undefined
  const stop = world.answer(async ({ digest }) => ({
    outcome: 'allowed-once',
    digest: (first ??= { id: '', digest }).digest,
  }))
  const ask = (what: string) => world.call('server', { what })
  assert.equal(await ask('a'), 'ran')
  assert.equal(await ask('a'), 'ran', 'the same arguments have the same digest')
  assert.equal(await ask('b'), `${notAnswered}: the answer was for other arguments`)
  stop()
  let stale: string | undefined
  world.answer(async ({ id }) => ({ outcome: 'allowed-once', id: (stale ??= id) }))
  assert.equal(await ask('c'), 'ran')
  assert.equal(await ask('c'), `${notAnswered}: the answer was for another question`)
  assert.deepEqual(world.ran, ['a', 'a', 'c'])
})

test('an answer is wanted only until the turn is cancelled; a later one is discarded', async () => {
  await using world = await createWorld()
  const late = Promise.withResolvers<ApprovalAnswer>()
  const controller = new AbortController()
  world.answer(() => {
    controller.abort()
    return late.promise
  })
  assert.equal(
    await world.call('server', { what: 'x' }, { signal: controller.signal }),
    'Error: tool call aborted before dispatch',
  )
  assert.equal(world.questions[0]?.signal.aborted, true)
  late.resolve({ outcome: 'allowed-once', scope: 'session' })
  await late.promise
  assert.deepEqual(world.events().at(-1), { type: 'approval/decided', outcome: 'cancelled' })
  assert.deepEqual(world.ctx.approval.grantsOf(world.agent.session), [])
  assert.deepEqual(world.ran, [])
})

test('questions at the same time are answered each for itself, also where one is given up', async () => {
  await using world = await createWorld()
  const open = new Map<string, (answer: ApprovalAnswer) => void>()
  const all = Promise.withResolvers<void>()
  world.answer(({ arguments: args }) => {
    const { promise, resolve } = Promise.withResolvers<ApprovalAnswer>()
    open.set((args as { what: string }).what, resolve)
    if (open.size === 3) all.resolve()
    return promise
  })
  const controller = new AbortController()
  const [one, two, three] = [
    world.call('server', { what: 'one' }),
    world.call('server', { what: 'two' }),
    world.call('server', { what: 'three' }, { signal: controller.signal }),
  ]
  await all.promise
  open.get('two')?.({ outcome: 'allowed-once' })
  assert.equal(await two, 'ran')
  controller.abort()
  assert.equal(await three, 'Error: tool call aborted before dispatch')
  open.get('one')?.({ outcome: 'rejected' })
  assert.equal(await one, 'Error: the user rejected this call')
  assert.deepEqual(world.ran, ['two'])
})

test('what would become of a call is explained without running or asking anything', async () => {
  await using world = await createWorld({
    filed: [{ effect: 'deny', kind: 'command', prefix: ['rm'] }, push],
  })
  world.answer(async () => assert.fail('nobody is asked'))
  const why = (tool: string, args: object, session: Session | undefined = world.agent.session) =>
    world.ctx.approval.explain({ session, tool, arguments: args as never })
  const sandbox = { isReady: true, runner: 'test', enforcement: 'full' }
  const mode = 'workspace-write'
  assert.deepEqual(await why('bash', { command: 'ls' }), {
    decision: 'allow',
    because: 'it runs in the sandbox',
    mode,
    sandbox,
  })
  assert.deepEqual(await why('bash', { command: 'ls; rm x' }), {
    decision: 'deny',
    because: 'rule r1 denies `rm …`: `rm x`; do it another way or tell the user',
    rule: { id: 'r1', rule: { effect: 'deny', kind: 'command', prefix: ['rm'] } },
    mode,
    sandbox,
  })
  const { decision, because, rule } = await why('bash', { command: 'git push', wants: 'network' })
  assert.deepEqual(
    [decision, because, rule?.id],
    ['allow', 'rule r2 allows `git push …, with the network`', 'r2'],
  )
  assert.equal((await why('write', { file_path: '../x', content: '' })).decision, 'ask')
  await assert.rejects(why('bsh', {}), {
    code: 'UNKNOWN_TOOL',
    message: 'there is no tool "bsh"; did you mean "bash"?',
  })
  world.ctx.approval.setPolicy(world.agent.session, 'never')
  const refused = await why('write', { file_path: '../x', content: '' })
  assert.equal(refused.decision, 'deny')
  assert.match(refused.because, /is outside of the workspace .*; approvals are off in this session/)
  assert.deepEqual([world.ran, world.events()], [[], [{ type: 'approval/policy', policy: 'never' }]])
})

test('the model is told of its mode, its sandbox, and whether somebody can be asked', async () => {
  await using world = await createWorld()
  const told = async (): Promise<string | undefined> =>
    (await world.ctx.systemPrompt.renderContexts({ agent: world.agent }))[0]?.text
  const files = 'Files are written below the working folder'
  const commands = 'commands run in a sandbox that writes nothing elsewhere and has no network'
  const nobody = 'Nobody can allow more here: do without, and say what you would need.'
  assert.equal(await told(), `Permission mode: workspace-write. ${files}; ${commands}. ${nobody}`)
  const stop = world.answer(allowed)
  const ask = 'What is asked for beyond that, the user decides.'
  assert.equal(await told(), `Permission mode: workspace-write. ${files}; ${commands}. ${ask}`)
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'read-only')
  assert.equal(
    await told(),
    `Permission mode: read-only. No file is written; commands run in a sandbox that writes nothing and has no network. ${ask}`,
  )
  const narrow = world.ctx.sandboxPolicy.extend({ network: true })
  assert.match((await told()) ?? '', /in a sandbox that writes nothing and reaches the network\. /)
  narrow()
  world.ctx.approval.setPolicy(world.agent.session, 'never')
  stop()
  assert.match((await told()) ?? '', /Nobody can allow more here/)
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'full-access')
  assert.equal(await told(), 'Permission mode: full-access. Nothing is confined.')
  const bare = async (options: object): Promise<string | undefined> => {
    await using other = await createWorld({ confines: false, ...options })
    await other.bash('ls')
    return (await other.ctx.systemPrompt.renderContexts({ agent: other.agent }))[0]?.text
  }
  const only = 'no sandbox works here, so commands that surely only read run and others are refused'
  assert.equal(await bare({}), `Permission mode: workspace-write. ${files}; ${only}. ${nobody}`)
  assert.equal(
    await bare({ mode: 'read-only' }),
    `Permission mode: read-only. No file is written; ${only}. ${nobody}`,
  )
  assert.equal(
    await bare({ yes: true }),
    `Permission mode: workspace-write. ${files}; no sandbox works here, and commands run with all rights of the user. ${nobody}`,
  )
})

test('whether anybody can be asked depends on who listens, the policy and --yes', async () => {
  await using world = await createWorld()
  const { approval } = world.ctx
  const { agent } = world
  assert.equal(approval.canAnswer(agent), false)
  world.answer(allowed)
  assert.equal(approval.canAnswer(agent), true)
  approval.setPolicy(agent.session, 'never')
  assert.equal(approval.canAnswer(agent), false)
  await using other = await createWorld({ yes: true })
  other.answer(allowed)
  assert.equal(other.ctx.approval.canAnswer(other.agent), false)
})

test('/permissions shows the mode and what was allowed, sets one, and forgets the other', async () => {
  await using world = await createWorld()
  const run = async (line: string) =>
    (await world.ctx.commands.execute(world.agent, line, new AbortController().signal))?.result
  world.answer(async () => ({ outcome: 'allowed-once', scope: 'session' }))
  await world.bash('git push', { wants: 'network' })
  assert.deepEqual(await run('/permissions'), {
    kind: 'success',
    text: 'the mode is workspace-write; what needs it is asked\nallowed for this session: git push …, with the network',
  })
  assert.deepEqual(await run('/permissions read-only'), {
    kind: 'success',
    text: 'the mode is read-only from the next call on',
  })
  assert.equal(world.ctx.sandboxPolicy.modeOf(world.agent.session), 'read-only')
  assert.deepEqual(await run('/permissions readonly'), {
    kind: 'error',
    text: 'there is no mode "readonly"; did you mean "read-only"?: [read-only|workspace-write|full-access|forget]',
  })
  await run('/permissions forget')
  assert.deepEqual(world.ctx.approval.grantsOf(world.agent.session), [])
})
