import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, sessionIn } from './dsh.ts'
import type { Bench, Ended } from './dsh.ts'

/** A session of two turns: a file is read and another one written, and then another model is asked. */
async function recorded(t: TestContext) {
  const place = bench(t)
  const { dsh, provider, work } = place
  writeFileSync(join(work, 'a.txt'), 'one\n')
  const server = await provider({
    script: [
      reply.toolCall('read', { file_path: 'a.txt' }, { id: 'call_1' }),
      reply.toolCall('write', { file_path: 'b.txt', content: 'two\n' }, { id: 'call_2' }),
      reply.text('It says one.'),
      reply.text('Nothing more.'),
    ],
  })
  const id = sessionIn((await dsh(['run', '-m', 'deepseek/deepseek-flash', 'What does a.txt say?'])).stderr)
  const second = await dsh(['run', '-r', id, '-m', 'deepseek/deepseek-v4-pro', 'And now?'])
  assert.equal(second.code, 0, second.stderr)
  const cat = await dsh(['session', 'cat', id])
  const events = cat.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { seq: number; type: string })
  const seqOf = (type: string, nth = 0): number => events.filter(event => event.type === type)[nth]?.seq ?? -1
  /** Output without what is another at each run. */
  const plain = ({ stdout }: Ended): string =>
    stdout
      .replaceAll(work, '/srv')
      .replaceAll(id, 'ID')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/#\d+/g, '#N')
      .replaceAll(/[1-9][\d,]* tokens from/g, 'SOME tokens from')
      .replaceAll(/\b(\d+ ms|\d+\.\d s)/g, 'MS')
  return { ...place, server, id, events, seqOf, plain }
}

function lines(...all: readonly string[]): string {
  return `${all.join('\n')}\n`
}

test('a request is shown as it was sent, and its body is what the provider received', async t => {
  const { dsh, server, id, plain, seqOf, events } = await recorded(t)
  const words = ['1', '1.2', `e${seqOf('tool/result', 1)}`, `#${events.length - 1}`]
  const sent = [0, 1, 1, 3].map(at => `${server.requests[at]?.text}\n`)
  for (const [at, word] of words.entries()) {
    const raw = await dsh(['session', 'request', id, word, '--raw'], { env: { DEEPSEEK_API_KEY: undefined } })
    assert.deepEqual([raw.code, raw.stdout === sent[at]], [0, true], `${word}: ${raw.stderr}`)
  }
  const shown = plain(await dsh(['session', 'request', id, '1.2']))
  assert.ok(
    shown.startsWith(
      'request 2 · turn 1, step 2 · before event #N · deepseek/deepseek-flash · answered by #N · SOME tokens from the cache\n\n' +
        'config    deepseek/deepseek-flash, reasoningEffort "high" (of the adapter)\nsystem\n    │ You are an AI agent',
    ),
    shown,
  )
  assert.ok(
    shown.endsWith(
      lines(
        '  2 assistant #N',
        '    │ [call call_1] read {"file_path":"a.txt"}',
        '  3 user (tool) #N',
        '    │ [result of call_1]',
        '    │ <path>/srv/a.txt</path>',
        '    │ <type>file</type>',
        '    │ <content>',
        '    │ 1: one',
        '    │ ',
        '    │ (end; 1 lines in all)',
        '    │ </content>',
      ),
    ),
    shown,
  )
  const json = JSON.parse((await dsh(['session', 'request', id, '3', '--json'])).stdout) as {
    readonly turn: number
    readonly request: { readonly messages: readonly unknown[]; readonly tools: readonly unknown[] }
    readonly messageSeqs: readonly number[]
  }
  assert.deepEqual([json.turn, json.request.messages.length, json.messageSeqs.length], [1, 6, 6])
})

test('two requests are compared: what is cached, where they part, and why', async t => {
  const { dsh, id, plain } = await recorded(t)
  const grown = plain(await dsh(['session', 'request', id, '1.2', '--diff', '1.1']))
  assert.equal(
    grown.replaceAll(/\d+\.\d KB/g, 'SIZE'),
    lines(
      '- request 1 · turn 1, step 1 · before event #N · deepseek/deepseek-flash · answered by #N · 0 tokens from the cache',
      '+ request 2 · turn 1, step 2 · before event #N · deepseek/deepseek-flash · answered by #N · SOME tokens from the cache',
      '',
      'SIZE identical — cached',
      'first difference: message 2, behind 2 that are the same',
      '+ {"role":"assistant","content":[{"type":"tool-call","id":"call_1","name":"read","arguments":"{\\"file_path\\":\\"a.txt\\"}"}]}',
      '',
      'nothing broke the cache: 1.2 goes on where 1.1 ends',
      'sizes: SIZE and SIZE',
    ),
  )
  const moved = plain(await dsh(['session', 'request', id, '2.1', '--diff', '1.3']))
  assert.match(moved, /^18 B identical — cached\nfirst difference: route\n- deepseek\/deepseek-flash\n\+ /m)
  assert.match(
    moved,
    /^cache broken here: another model is asked, deepseek\/deepseek-flash → deepseek\/deepseek-v4-pro$/m,
  )
  const same = plain(await dsh(['session', 'request', id, '1.2', '--diff', '1.2']))
  assert.match(same, /^\d\.\d KB identical, all of both\n\nnothing broke the cache\n$/m)
})

test('at shows the place, the context, what is derived and the files of any event', async t => {
  const { dsh, id, seqOf, plain, work } = await recorded(t)
  writeFileSync(join(work, 'b.txt'), 'changed later\n')
  const result = seqOf('tool/result', 1)
  const early = plain(await dsh(['session', 'at', id, `${seqOf('tool/call', 1)}`]))
  assert.match(
    early,
    /^event #N · tool\/call · TIME · in turn 1, step 2\n {2}write \(call_2\) is called\n\ncontext {6}5 messages, to deepseek\/deepseek-flash\n/,
  )
  assert.match(
    early,
    /^ {2}#N {4}assistant → read \{"file_path":"a\.txt"\}\n {2}#N {4}tool {6}← <path>\/srv\/a\.txt<\/path> ⏎ /m,
  )
  assert.match(early, /^ {2}permissions +\{"mode":"workspace-write","policy":null\}$/m)
  assert.match(early, /^files {8}1 file, 4 B, as they were after event #N\n {2}a\.txt {2}4 B\n$/m)

  const after = await dsh(['session', 'at', id, `e${seqOf('step/end', 1)}`, '--file', 'b.txt'])
  assert.deepEqual([after.code, after.stdout], [0, 'two\n'])
  const absolute = await dsh(['session', 'at', id, `${seqOf('step/end', 1)}`, '--file', join(work, 'a.txt')])
  assert.equal(absolute.stdout, 'one\n')
  const none = await dsh(['session', 'at', id, `${result - 1}`, '--file', 'b.txt'])
  assert.equal(none.code, 1)
  assert.match(
    none.stderr,
    /^error NO_SUCH_FILE: there was no file "b\.txt" at event #\d+\n {2}dsh session at \w+ \d+\n$/,
  )

  const compared = plain(
    await dsh(['session', 'at', id, `#${seqOf('user/message')}`, '--diff', `${seqOf('turn/end')}`]),
  )
  assert.match(
    compared,
    /^from event #N to event #N\n\ncontext {6}1 message → 7, 1 the same\nprojections {2}\d changed\n/,
  )
  assert.match(
    compared,
    /^ {2}turn\n {4}- \{"openTurn":1,"openStep":1,"lastTurn":1\}\n {4}\+ \{"openTurn":null,/m,
  )
  assert.match(compared, /^files {8}1 changed\n {2}\+ b\.txt\n$/m)

  const json = JSON.parse((await dsh(['session', 'at', id, `${result}`, '--json'])).stdout) as Record<
    string,
    unknown
  >
  assert.deepEqual([json['seq'], json['turn'], json['step'], json['calls']], [result, 1, 2, []])
  assert.deepEqual(Object.keys(json['projections'] as object).slice(0, 3), ['turn', 'route', 'permissions'])
  const first = plain(await dsh(['session', 'at', id, '0']))
  assert.match(first, /before the first turn\n\ncontext {6}0 messages, no model asked yet\n/)
  assert.match(first, /^files {8}unknown: no restore point is as old as event #N\n$/m)
})

test('a session that is being written, or is damaged, is looked at all the same', async t => {
  const { dsh, start, server, id, logs } = await recorded(t)
  const gate = Promise.withResolvers<void>()
  server.push(reply.text('late').gate(gate.promise))
  const running = start(['run', '-r', id, 'And again?'])
  await server.received(5)
  const open = await dsh(['session', 'request', id, '3.1'])
  assert.equal(open.code, 0)
  assert.match(
    open.stdout,
    /^request 5 · turn 3, step 1 · before event #\d+ · deepseek\/deepseek-v4-pro · running\n/,
  )
  assert.match(open.stderr, /^the session is read-only: it is open in another program: process \d+/)
  const body = await dsh(['session', 'request', id, '5', '--raw'])
  assert.equal(body.stdout, `${server.requests[4]?.text}\n`)
  gate.resolve()
  assert.equal((await running.ended).code, 0)

  const [log = ''] = logs()
  const bytes = readFileSync(log)
  const place = Math.floor(bytes.length * 0.7)
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
  writeFileSync(log, bytes)
  const damaged = await dsh(['session', 'request', id, '1.1'])
  assert.equal(damaged.code, 0, damaged.stderr)
  assert.match(damaged.stderr, /^the session is read-only: the log is damaged behind what is shown: /)
})

test('places that are none are refused with those there are', async t => {
  const { dsh, id, events } = await recorded(t)
  const cases: [string[], RegExp][] = [
    [
      ['session', 'at', id, 'x'],
      new RegExp(
        `^error UNKNOWN_EVENT: session ${id} has no event "x"; it has 0 to ${events.length - 1}\\n  dsh session at ${id} ${events.length - 1}\\n$`,
      ),
    ],
    [['session', 'at', id, `${events.length}`], /^error UNKNOWN_EVENT: /],
    [['session', 'at', id, '1', '--diff', '1', '--file', 'a'], /^error OPTION_CONFLICT: /],
    [
      ['session', 'request', id, '9'],
      new RegExp(
        `^error UNKNOWN_REQUEST: session ${id} has no request "9"; it has 4: 1\\.1 to 2\\.1\\n  dsh session request ${id} 2\\.1\\n$`,
      ),
    ],
    [['session', 'request', id, '#0'], /^error UNKNOWN_REQUEST: /],
    [['session', 'request', id, '1', '--raw', '--json'], /^error OPTION_CONFLICT: /],
    [['session', 'request', id, '1', '--raw', '--diff', '2'], /^error OPTION_CONFLICT: /],
    [
      ['session', 'test', 'play', id],
      /^error UNKNOWN_ACTION: dsh session test does record or run; found "play"\n/,
    ],
    [['session', 'test'], /^error UNKNOWN_ACTION: .* found nothing\n/],
    [['session', 'test', 'record'], /^error MISSING_WORD: /],
    [['session', 'test', 'run'], /^error MISSING_WORD: /],
    [['replay', id], /^error MISSING_OPTION: dsh replay needs --model\n/],
    [['replay', id, '-m', 'deepseek/x', '--tools', 'none'], /^error UNKNOWN_TOOLS: /],
    [['replay', id, '-m', 'deepseek/x', '--from', '999'], /^error UNKNOWN_EVENT: /],
    [['replay', id, '-m', 'nobody/x'], /^error UNKNOWN_MODEL: /],
  ]
  const check = async ([words, pattern]: (typeof cases)[number]): Promise<void> => {
    const { code, stdout, stderr } = await dsh(words)
    assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')}: ${stderr}`)
    assert.match(stderr, pattern)
  }
  await Promise.all(cases.map(check))
})

test('a session becomes a test that needs no key, network or workspace', async t => {
  const { dsh, id, work, server } = await recorded(t)
  const made = await dsh(['session', 'test', 'record', id, 'it.jsonl'])
  assert.deepEqual(
    [made.code, made.stdout, made.stderr],
    [
      0,
      '4 requests recorded in it.jsonl\n',
      'nothing that looks like a secret was found; look before you give it away\n',
    ],
  )
  const again = await dsh(['session', 'test', 'record', id, 'it.jsonl'])
  assert.deepEqual(
    [again.code, again.stderr],
    [2, 'error OUTPUT_FILE: "it.jsonl" is there already\n  rm it.jsonl\n'],
  )
  rmSync(join(work, 'a.txt'))
  await server.close()
  const keyless = { env: { DEEPSEEK_API_KEY: undefined, DEEPSEEK_BASE_URL: undefined } }
  const run = await dsh(['session', 'test', 'run', 'it.jsonl'], keyless)
  assert.deepEqual([run.code, run.stdout, run.stderr], [0, '✓ it.jsonl: 4 requests as recorded\n', ''])

  const text = readFileSync(join(work, 'it.jsonl'), 'utf8')
  assert.ok(!text.includes(work), text)
  writeFileSync(join(work, 'old.jsonl'), text.replace('Read a file before', 'Never read a file before'))
  writeFileSync(join(work, 'broken.jsonl'), text.slice(0, 500))
  const failed = await dsh(['session', 'test', 'run', 'old.jsonl', 'broken.jsonl', 'it.jsonl'], keyless)
  assert.equal(failed.code, 1)
  assert.match(
    failed.stdout,
    /^✗ old\.jsonl\n {2}request 1\.1 is another one from its system on\n {2}- .*Never read.*\n {2}\+ .*Read a file.*\n✗ broken\.jsonl\n✓ it\.jsonl: 4 requests as recorded\n3 recordings, 2 failed\n$/,
  )
  assert.match(failed.stderr, /^error RECORDING_DAMAGED: broken\.jsonl:2: /)
  const update = await dsh(['session', 'test', 'run', 'old.jsonl', '--update'], keyless)
  assert.deepEqual([update.code, update.stdout], [0, '↻ old.jsonl: written anew, 4 requests\n'])
  assert.equal(readFileSync(join(work, 'old.jsonl'), 'utf8'), text)
})

test('another model gets the same inputs, with the recorded results, beside the first one', async t => {
  const { dsh, server, id, plain, work } = await recorded(t)
  server.push(
    reply.toolCalls([
      { name: 'read', arguments: { file_path: 'a.txt' } },
      { name: 'write', arguments: { content: 'two\n', file_path: 'b.txt' } },
    ]),
    reply.text('One, it says.'),
    reply.text('No.'),
  )
  rmSync(join(work, 'b.txt'))
  const done = await dsh(['replay', id, '-m', 'deepseek/other'])
  assert.equal(done.code, 0, done.stderr)
  assert.equal(
    plain(done)
      .replaceAll(/[\d,]+ \([\d,]+ cached\)/g, 'TOKENS')
      .replaceAll(/ +/g, ' '),
    lines(
      ' recorded replayed',
      'model deepseek/deepseek-flash, deepseek… deepseek/other',
      'turns 2 2',
      'requests 4 3',
      'tokens in TOKENS TOKENS',
      'tokens out 26 24',
      `cost ${/^cost +(\S+ CNY)/m.exec(done.stdout)?.[1]} unknown`,
      'time MS MS',
      'tool calls read 1, write 1 read 1, write 1',
      'ended done done',
      '',
      '1.1 read {"file_path":"a.txt"} read {"file_path":"a.txt"}',
      '1.2 write {"file_path":"b.txt","conte… write {"content":"two\\n","file_pa…',
      '1.3 It says one. One, it says.',
      '2.1 Nothing more. No.',
      '',
      'every call was the recorded one',
      'answer recorded: Nothing more.',
      'answer replayed: No.',
    ),
  )
  assert.throws(() => readFileSync(join(work, 'b.txt')), { code: 'ENOENT' })
  const shown = await dsh(['session', 'show', sessionIn(done.stderr)])
  assert.match(
    shown.stdout,
    /^› What does a\.txt say\?\n● read a\.txt .*\n● write b\.txt .*\nOne, it says\.\n› And now\?\nNo\.\n$/,
  )
})

test('a replay stops at the first call that the log does not have, and says so', async t => {
  const { dsh, server, id } = await recorded(t)
  server.push(reply.toolCall('read', { file_path: 'b.txt' }))
  const { code, stdout } = await dsh(['replay', id, '-m', 'deepseek/other', '--json'])
  const { divergence, replayed } = JSON.parse(stdout) as {
    readonly divergence: Record<string, unknown>
    readonly replayed: Record<string, unknown>
  }
  assert.equal(code, 1)
  assert.equal(divergence['turn'], 1)
  assert.deepEqual(divergence['came'], { name: 'read', arguments: { file_path: 'b.txt' } })
  assert.deepEqual([replayed['turns'], replayed['cost'], replayed['calls']], [1, null, { read: 1 }])

  assert.match((await dsh(['session', 'ls'])).stdout, /^\S+ .* \[replay\]\n/, 'a replay is one in lists')
  server.push(reply.text('on'))
  const on = await dsh(['run', '-c', 'go on'])
  assert.equal(sessionIn(on.stderr), id, 'and not what a person goes on with')

  server.push(reply.status(401, { body: { error: { message: 'no' } } }))
  const refused = await dsh(['replay', id, '-m', 'deepseek/other'])
  assert.equal(refused.code, 3)
  const keyless = await dsh(['replay', id, '-m', 'deepseek/other'], { env: { DEEPSEEK_API_KEY: undefined } })
  assert.deepEqual([keyless.code, keyless.stdout], [3, ''])
})

test('a replay that is stopped keeps what came so far, and tells it', async t => {
  const { start, dsh, server, id } = await recorded(t)
  server.push(reply.toolCall('read', { file_path: 'a.txt' }), reply.text('late').gate(new Promise(() => {})))
  const running = start(['replay', id, '-m', 'deepseek/other'])
  await server.received(6)
  running.child.kill('SIGINT')
  const { code, stdout, stderr } = await running.ended
  assert.equal(code, 130, stderr)
  assert.match(stdout, /^ended +done +cancelled$/m)
  assert.match((await dsh(['session', 'show', sessionIn(stderr)])).stdout, /\n■ cancelled\n$/)
})

test('the demo has no wire, so there is no body of its requests', async t => {
  const { dsh } = bench(t)
  const id = sessionIn((await dsh(['run', '-m', 'demo/demo', 'hello'])).stderr)
  const { code, stdout, stderr } = await dsh(['session', 'request', id, '1', '--raw'])
  assert.deepEqual([code, stdout], [1, ''])
  assert.equal(
    stderr,
    'error NO_WIRE_BODY: the body for demo/demo cannot be made: its adapter has no wire of its own\n  dsh session request ' +
      `${id} 1 --json\n`,
  )
})

test('live tools work in a copy of the folder as it was then, or in the one that is named', async t => {
  const { dsh, server, id, events, work, root } = await recorded(t)
  writeFileSync(join(work, 'a.txt'), 'changed later\n')
  const prompt = events.findLast(({ type }) => type === 'turn/start')?.seq
  const answers = (): void =>
    server.push(
      reply.toolCall('read', { file_path: 'a.txt' }),
      reply.toolCall('write', { file_path: 'c.txt', content: 'three\n' }),
      reply.text('Done.'),
    )
  answers()
  const live = await dsh(['replay', id, '-m', 'deepseek/other', '--tools', 'live', '--from', `${prompt}`])
  assert.equal(live.code, 0, live.stderr)
  const copy = /^2 files as they were at event #\d+ are in (.*)$/m.exec(live.stderr)?.[1] ?? ''
  assert.deepEqual(
    ['a.txt', 'b.txt', 'c.txt'].map(name => readFileSync(join(copy, name), 'utf8')),
    ['one\n', 'two\n', 'three\n'],
  )
  assert.throws(() => readFileSync(join(work, 'c.txt')), { code: 'ENOENT' })
  assert.match(
    live.stdout,
    /^diverged in turn 2: the log has no more calls, the model called read \{"file_path":"a\.txt"\}$/m,
  )

  const named = join(root, 'named')
  rmSync(join(root, 'user/.dsh/restore'), { recursive: true })
  const lost = await dsh(['replay', id, '-m', 'deepseek/other', '--tools', 'live'])
  assert.notEqual(lost.code, 0)
  await assertNamed({ dsh, server, id, named, answers })
})

async function assertNamed(on: {
  readonly dsh: Bench['dsh']
  readonly server: Awaited<ReturnType<Bench['provider']>>
  readonly id: string
  readonly named: string
  readonly answers: () => void
}): Promise<void> {
  const { dsh, server, id, named, answers } = on
  const missing = await dsh(['replay', id, '-m', 'deepseek/other', '--tools', 'live', '-C', named])
  assert.match(missing.stderr, /^error NO_FOLDER: /m)
  mkdirSync(named)
  writeFileSync(join(named, 'a.txt'), 'mine\n')
  answers()
  server.push(reply.text('Again.'))
  const done = await dsh(['replay', id, '-m', 'deepseek/other', '--tools', 'live', '-C', named])
  assert.equal(done.code, 0, done.stderr)
  assert.equal(readFileSync(join(named, 'c.txt'), 'utf8'), 'three\n')
}
