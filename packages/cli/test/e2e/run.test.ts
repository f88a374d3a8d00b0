import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines, promptsIn, sessionIn } from './dsh.ts'

const say = 'What is the answer?'

test('the answer stands alone on standard output, all else on standard error', async t => {
  const { dsh, provider, work } = bench(t)
  const { requests } = await provider({ script: [reply.text('The answer is 42.\nReally.')] })
  const { code, stdout, stderr } = await dsh(['run', say])
  assert.equal(stdout, 'The answer is 42.\nReally.\n')
  assert.equal(code, 0)
  const lines = stderr.split('\n')
  assert.match(
    lines[0] ?? '',
    /^deepseek\/deepseek-flash \(key in DEEPSEEK_API_KEY\) · new session \S{10} · /,
  )
  assert.ok(lines[0]?.endsWith(work))
  assert.match(lines[1] ?? '', /^workspace-write: files of the folder may be changed; .*; more is refused$/)
  assert.match(
    lines[2] ?? '',
    /^session \S{10} · [\d,]+ tokens in.*, [\d,]+ out · no files changed · go on: .* run -r \S{10} "…"$/,
  )
  assert.deepEqual(lines.slice(3), [''])
  assert.equal(requests[0]?.body.model, 'deepseek-flash')
})

test('steps are shown with what they did, how long it took and how it ended', async t => {
  const { dsh, provider, work } = bench(t)
  writeFileSync(join(work, 'a.txt'), 'one\n')
  await provider({
    script: [
      reply.toolCall('read', { file_path: 'a.txt' }, { text: 'I look first.' }),
      reply.toolCall('edit', { file_path: join(work, 'a.txt'), old_string: 'one', new_string: 'two' }),
      reply.toolCall('bash', { command: 'cat a.txt; exit 3', description: 'Show it' }),
      reply.text('done'),
    ],
  })
  const { code, stdout, stderr } = await dsh(['run', '--yes', say])
  assert.equal(stdout, 'done\n')
  assert.match(stderr, /\nI look first\.\n● read a\.txt \(\d+ ms\)\n/)
  assert.match(stderr, /\n● edit a\.txt \(\d+ ms\)\n/)
  assert.match(stderr, /\n● bash cat a\.txt; exit 3 \([\d.]+ m?s, exit 3\)\n {2}│ two\n/)
  assert.match(stderr, / · changed a\.txt · /)
  assert.equal(readFileSync(join(work, 'a.txt'), 'utf8'), 'two\n')
  assert.equal(code, 0)
})

test('--json prints the events as they are, and the result in a last line', async t => {
  const { dsh, provider, work } = bench(t)
  const { ledger } = await provider({
    script: [reply.toolCall('write', { file_path: 'new.txt', content: 'x' }), reply.text('ok')],
  })
  const { code, stdout, stderr } = await dsh(['run', '--json', '--yes', say])
  const { events, result } = jsonLines(stdout)
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, at) => (events[0]?.['seq'] as number) + at),
  )
  const types = events.map(({ type }) => type)
  for (const type of ['turn/start', 'user/message', 'request/header', 'tool/call', 'tool/result', 'turn/end'])
    assert.ok(types.includes(type), type)
  assert.deepEqual(Object.keys(result), ['status', 'sessionId', 'usage', 'cost', 'changedFiles'])
  assert.equal(result['status'], 'completed')
  assert.equal(result['sessionId'], sessionIn(stderr))
  assert.equal(result['cost'], null)
  assert.deepEqual(result['changedFiles'], ['new.txt'])
  const usage = result['usage'] as Record<string, number>
  const charged = ledger.total
  assert.equal(usage['outputTokens'], charged.outputTokens)
  assert.equal(
    (usage['inputTokens'] ?? 0) + (usage['cacheReadTokens'] ?? 0),
    charged.inputTokens + charged.cacheReadTokens,
  )
  assert.equal(code, 0)
  assert.ok(existsSync(join(work, 'new.txt')))
})

test('files that a command changed are named in the end, those that it made and removed are not', async t => {
  const { dsh, provider, work } = bench(t)
  writeFileSync(join(work, 'old'), 'x')
  const bash = (command: string) => reply.toolCall('bash', { command, description: 'changes files' })
  await provider({
    script: [bash('rm old; echo x > new; echo x > soon-gone'), bash('rm soon-gone'), reply.text('ok')],
  })
  const { stderr } = await dsh(['run', '--yes', say])
  assert.match(stderr, / · changed new, old · go on: /)
})

test('the stored events are those that were printed', async t => {
  const { dsh, provider } = bench(t)
  await provider({ script: [reply.text('ok')] })
  const run = await dsh(['run', '--json', say])
  const { stdout } = await dsh(['session', 'cat', sessionIn(run.stderr)])
  const printed = run.stdout.split('\n').slice(0, -2)
  const stored = stdout.split('\n').slice(0, -1)
  assert.deepEqual(stored, printed)
})

test('the prompt comes from standard input where there is none, or a dash', async t => {
  const { dsh, provider } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  await dsh(['run'], { input: 'from a pipe ✓\nsecond line\n' })
  await dsh(['run', '-'], { input: 'behind a dash' })
  await dsh(['run', 'two', 'words'])
  const prompts = requests.flatMap(promptsIn)
  assert.deepEqual(prompts, ['from a pipe ✓\nsecond line', 'behind a dash', 'two words'])
})

test('an empty prompt is refused', async t => {
  const { dsh } = bench(t)
  for (const args of [['run'], ['run', '-'], ['run', '  ']]) {
    const { code, stdout, stderr } = await dsh(args, { input: '\n' })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^error EMPTY_PROMPT: the prompt is empty\n/)
  }
})

test('-m asks another model, which stays the default once it has answered', async t => {
  const { dsh, provider, home } = bench(t)
  const { requests, push } = await provider()
  const ask = async (...args: string[]) => await dsh(['run', ...args, say])
  push(reply.status(400, { body: { error: { message: 'no such model' } } }))
  assert.equal((await ask('-m', 'deepseek/typo')).code, 5)
  push(reply.text('a'), reply.text('b'), reply.text('c'))
  await ask()
  const kept = 'deepseek/deepseek-v4-pro is the default from now on\n'
  assert.ok((await ask('-m', 'deepseek/deepseek-v4-pro')).stderr.includes(kept))
  await ask('-m', 'demo/demo')
  await ask()
  assert.deepEqual(
    requests.map(({ body }) => body.model),
    ['typo', 'deepseek-flash', 'deepseek-v4-pro', 'deepseek-v4-pro'],
  )
  assert.equal(
    readFileSync(join(home, 'default-model.json'), 'utf8'),
    '{"provider":"deepseek","model":"deepseek-v4-pro"}\n',
  )
})

test('the default is told once, and listed also where no catalogue has it', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('a') })
  const ask = async () => (await dsh(['run', '-m', 'deepseek/own', say])).stderr
  assert.ok((await ask()).includes('\ndeepseek/own is the default from now on\n'))
  assert.ok(!(await ask()).includes('default'))
  const { stdout } = await dsh(['models'])
  assert.match(stdout, /^deepseek\/own +DeepSeek +key in DEEPSEEK_API_KEY, default\n/m)
})

test('a default whose key is gone is passed over', async t => {
  const { dsh, provider, home } = bench(t)
  const { requests } = await provider({ fallback: reply.text('a') })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'default-model.json'), '{"provider":"openai","model":"gpt-5"}')
  assert.equal((await dsh(['run', say])).code, 0)
  writeFileSync(join(home, 'default-model.json'), 'garbage')
  assert.equal((await dsh(['run', say])).code, 0)
  assert.deepEqual(
    requests.map(({ body }) => body.model),
    ['deepseek-flash', 'deepseek-flash'],
  )
})

test('without a key the demo answers and says so', async t => {
  const { dsh } = bench(t)
  const { code, stdout, stderr } = await dsh(['run', say])
  assert.equal(code, 0)
  assert.match(stdout, /^I am the demo model of dsh/)
  assert.match(stderr, /^no key was found, so the demo model answers from a script; /)
})

test('-C works in another folder', async t => {
  const { dsh, provider, root } = bench(t)
  await provider({
    script: [reply.toolCall('bash', { command: 'pwd', description: 'Where' }), reply.text('ok')],
  })
  mkdirSync(join(root, 'other'))
  const { stderr } = await dsh(['run', '--yes', '-C', '../other', say])
  assert.ok(stderr.includes(` · ${join(root, 'other')}\n`), stderr)
  assert.ok(stderr.includes(`  │ ${join(root, 'other')}\n`), stderr)
})

test('what nobody can be asked about is denied, and the exit code says so', async t => {
  const { dsh, provider, work } = bench(t)
  const touch = reply.toolCall('bash', { command: 'touch made', description: 'Make a file' })
  await provider({ script: [touch, reply.text('I could not.'), touch, reply.text('I could.')] })
  assert.equal((await dsh(['permission', 'ask', 'touch'])).stdout, `r1   ask touch …, in ${work}\n`)
  const denied = await dsh(['run', say])
  assert.deepEqual([denied.code, denied.stdout], [4, 'I could not.\n'])
  assert.match(denied.stderr, /\nsomething was denied because nobody could be asked; --yes allows it, /)
  assert.deepEqual(readdirSync(work), [])
  assert.equal((await dsh(['session', 'show', sessionIn(denied.stderr)])).stderr, '')
  const allowed = await dsh(['run', '--yes', say])
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'I could.\n'])
  assert.deepEqual(readdirSync(work), ['made'])
})

test('--yes allows nothing beyond the folder and the sandbox, and a rule does', async t => {
  const { dsh, provider, work, root } = bench(t)
  const write = reply.toolCall('write', { file_path: '../made', content: '' })
  const { requests } = await provider({ script: [write, reply.text('No.'), write, reply.text('Yes.')] })
  const denied = await dsh(['run', '--yes', say])
  assert.deepEqual([denied.code, denied.stdout], [4, 'No.\n'])
  assert.match(JSON.stringify(requests[1]?.body.messages?.at(-1)), /--yes allows nothing beyond the sandbox/)
  assert.deepEqual([readdirSync(work), existsSync(join(root, 'made'))], [[], false])
  await dsh(['permission', 'allow', '--write', '../made'])
  assert.equal((await dsh(['run', say])).stdout, 'Yes.\n')
  assert.equal(existsSync(join(root, 'made')), true)
})

test('full-access asks nothing, read-only writes nothing', async t => {
  const { dsh, provider, work } = bench(t)
  const touch = reply.toolCall('bash', { command: 'touch made', description: 'Make a file' })
  const write = reply.toolCall('write', { file_path: 'written', content: '' })
  await provider({ script: [touch, reply.text('a'), write, reply.text('b')] })
  assert.equal((await dsh(['run', '--permission', 'full-access', say])).code, 0)
  assert.deepEqual(readdirSync(work), ['made'])
  await dsh(['run', '--permission', 'read-only', say])
  assert.deepEqual(readdirSync(work), ['made'])
})

test('a session keeps the mode it began in until another is named', async t => {
  const { dsh, provider, work } = bench(t)
  const touch = reply.toolCall('bash', { command: 'touch made', description: 'Make a file' })
  const write = reply.toolCall('write', { file_path: 'written', content: '' })
  const done = reply.text('done')
  await provider({ script: [done, write, done, touch, done, done, write, done, touch, done] })
  const looking = sessionIn((await dsh(['run', '--permission', 'read-only', say])).stderr)
  await dsh(['run', '--yes', '-r', looking, 'now'])
  assert.deepEqual(readdirSync(work), [])
  assert.equal((await dsh(['run', '--permission', 'full-access', '-r', looking, 'now'])).code, 0)
  assert.deepEqual(readdirSync(work), ['made'])
  const writing = sessionIn((await dsh(['run', say])).stderr)
  assert.equal((await dsh(['run', '-r', writing, 'now'])).code, 0)
  assert.deepEqual(readdirSync(work), ['made', 'written'])
  assert.equal((await dsh(['run', '-r', writing, 'now'])).code, 0)
})

test('--schema takes JSON that fits, in a fence or not, and asks once more with the errors', async t => {
  const { dsh, provider, work } = bench(t)
  const { requests, push } = await provider()
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }
  writeFileSync(join(work, 'schema.json'), JSON.stringify(schema))
  const ask = async () => await dsh(['run', '--schema', 'schema.json', say])

  push(reply.text('{"n": 1}'))
  const first = await ask()
  assert.deepEqual([first.code, first.stdout], [0, '{"n": 1}\n'])
  assert.ok(requests[0]?.text.includes('It must fit this JSON Schema'))

  push(reply.text('{"n": "one"}'), reply.text('```json\n{"n": 2}\n```'))
  const second = await ask()
  assert.deepEqual([second.code, second.stdout], [0, '{"n": 2}\n'])
  assert.match(
    String(requests[2]?.body.messages?.at(-1)?.content),
    /^The answer does not fit the JSON Schema:\n- #/,
  )

  push(reply.text('no'), reply.text('never'))
  const third = await ask()
  assert.deepEqual([third.code, third.stdout], [1, ''])
  assert.match(
    third.stderr,
    /\nerror SCHEMA_MISMATCH: the answer does not fit the schema: - it is not JSON: /,
  )
  assert.equal(requests.length, 5)
})

test('an answer that reaches the output limit fails, and is still given', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('half an ans', { finish: 'length' }) })
  const { code, stdout, stderr } = await dsh(['run', say])
  assert.deepEqual([code, stdout], [1, 'half an ans\n'])
  assert.match(stderr, /\nthe answer reached the output limit of the model and is cut off\n/)
  assert.equal(jsonLines((await dsh(['run', '--json', say])).stdout).result['status'], 'max-tokens')
})

test('a model name with slashes and the place of the key do not matter to the route', async t => {
  const { dsh, provider } = bench(t)
  const mock = await provider({ fallback: reply.text('ok') })
  const env = { DEEPSEEK_BASE_URL: `${mock.url}/chat/completions`, DEEPSEEK_API_KEY: '  sk-mock\n' }
  assert.equal((await dsh(['run', '-m', 'deepseek/org/model:free', say], { env })).code, 0)
  assert.equal(mock.requests[0]?.body.model, 'org/model:free')
  assert.equal(mock.requests[0]?.path, '/chat/completions')
})

test('--help and --version answer on standard output', async t => {
  const { dsh } = bench(t)
  const helps: [string[], RegExp][] = [
    [['--version'], /^dsh \d+\.\d+\.\d+\n$/],
    [['-v'], /^dsh \d/],
    [['version'], /^dsh \d/],
    [[], /^dsh is an agent/],
    [['--help'], /^dsh is an agent/],
    [['help'], /^dsh is an agent/],
    [['run', '--help'], /^Usage: dsh run /],
    [['help', 'session'], /^Usage: dsh session ACTION\n/],
    [['session', '--help'], /^Usage: dsh session ACTION\n/],
    [['session', 'ls', '--help'], /^Usage: dsh session ls /],
    [['help', 'session', 'ls'], /^Usage: dsh session ls /],
    [['models', '-h'], /^Usage: dsh models\n/],
  ]
  for (const [args, pattern] of helps) {
    const { code, stdout, stderr } = await dsh(args)
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, pattern)
  }
})

test('models lists what can be asked, and whose key is there', async t => {
  const { dsh } = bench(t)
  const env = { DEEPSEEK_API_KEY: 'sk-x' }
  const { code, stdout } = await dsh(['models'], { env })
  assert.equal(code, 0)
  assert.match(stdout, /^deepseek\/deepseek-flash +DeepSeek Flash +key in DEEPSEEK_API_KEY, default\n/)
  assert.match(stdout, /^openai\/gpt-5 +GPT-5 +needs OPENAI_API_KEY\n/m)
  assert.match(stdout, /^demo\/demo +Demo, a script +needs no key\n$/m)
  const rows = (await dsh(['models', '--json'])).stdout.trim().split('\n')
  const parsed = rows.map(row => JSON.parse(row) as Record<string, unknown>)
  assert.deepEqual(
    parsed.filter(({ isDefault }) => isDefault).map(({ provider, model }) => `${provider}/${model}`),
    ['demo/demo'],
  )
})
