import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { storeSqlite } from '../../src/plugins/store-sqlite/index.ts'
import { userFact } from '../../src/testing/index.ts'

const id = SessionId('s1')
const childPath = fileURLToPath(new URL('store-child.ts', import.meta.url))

const stores = ['store-jsonl', 'store-sqlite'] as const

type Store = (typeof stores)[number]

function testStores(title: string, run: (t: TestContext, store: Store) => Promise<void>): void {
  for (const store of stores) test(`${store}: ${title}`, t => run(t, store))
}

interface Child {
  readonly process: ChildProcess
  /** Lines of its output, as they come. */
  readonly lines: AsyncIterator<string>
  kill(): Promise<void>
}

function setup(t: TestContext, store: Store = 'store-jsonl') {
  const home = mkdtempSync(join(tmpdir(), 'store-crash-'))
  const root = join(home, store === 'store-sqlite' ? 'sessions.sqlite' : 'sessions')
  const marks = join(home, 'marks')
  const children: Child[] = []
  t.after(async () => {
    for (const child of children) await child.kill()
    rmSync(home, { recursive: true })
  })
  const start = (role: string): Child => {
    const args = ['--conditions=dsh-source', childPath, role, root, marks]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const kill = async (): Promise<void> => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    const started = { process: child, lines, kill }
    children.push(started)
    return started
  }
  const open = async (): Promise<Context> => {
    const ctx = new Context()
    await ctx.plugin(SessionStore)
    if (store === 'store-sqlite') await ctx.plugin(storeSqlite, { path: root })
    else await ctx.plugin(storeJsonl, { root })
    return ctx
  }
  const effects = (): readonly string[] =>
    existsSync(marks) ? readFileSync(marks, 'utf8').trimEnd().split('\n') : []
  return { root, start, open, effects }
}

async function nextLine(child: Child): Promise<string> {
  const { value, done } = await child.lines.next()
  assert.ok(done !== true, 'the program ended')
  return value
}

/** What the killed program's session looks like to the next one, which also goes on with it. */
async function recover(open: () => Promise<Context>): Promise<readonly SessionEvent[]> {
  const ctx = await open()
  const persistence = ctx.sessionPersistence
  const first = await persistence.inspect(id)
  assert.deepEqual(await persistence.inspect(id), first)
  assert.equal(first.readOnly, undefined)
  const { events } = await persistence.load(id)
  assert.deepEqual(events, first.events)
  assert.deepEqual(
    events.map(({ seq }) => seq),
    [...events.keys()],
  )
  const preparation = await persistence.prepare(id)
  const { session } = preparation
  ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  session.append('user/message', userFact('after the crash'), { surfaceOp: 'append' })
  await ctx.dispose()
  const next = await open()
  const again = await next.sessionPersistence.inspect(id)
  assert.equal(again.events.length, events.length + 2)
  await next.dispose()
  return events
}

testStores(
  'a program that is killed at any moment of writing loses nothing that it was told is durable',
  async (t, store) => {
    for (let round = 0; round < 6; round += 1) {
      const { root, start, open } = setup(t, store)
      const child = start('append')
      let acknowledged = 0
      for (let acks = 1 + ((round * 9) % 40); acks > 0; acks -= 1)
        acknowledged = Number(await nextLine(child))
      await child.kill()
      for (let line = await child.lines.next(); line.done !== true; line = await child.lines.next()) {
        acknowledged = Number(line.value)
      }
      const events = await recover(open)
      assert.ok(events.length >= acknowledged, `${events.length} of ${acknowledged}`)
      for (const { seq, data } of events as readonly SessionEvent<'user/message'>[]) {
        const [block] = data.content
        assert.ok(block?.type === 'text' && block.text.startsWith(`${seq} `))
      }
      const left = readdirSync(dirname(root), { recursive: true, encoding: 'utf8' }).filter(name =>
        name.endsWith('.tmp'),
      )
      assert.deepEqual(left, [])
    }
  },
)

const turn = ['turn/start', 'step/start', 'user/message', 'request/header', 'request/context']

/** The log without chunks and inbox, and how each call ended. */
function outline(events: readonly SessionEvent[]): readonly string[] {
  const shown = events.filter(({ type }) => type !== 'assistant/chunk' && type !== 'agent/inbox/spliced')
  return shown.map(event => {
    if (event.type === 'tool/result') return `${event.type} ${event.data.error?.code ?? 'ok'}`
    if (event.type === 'turn/end') return `${event.type} ${event.data.reason.kind}`
    return event.type
  })
}

const deaths: readonly (readonly [place: string, effects: readonly string[], log: readonly string[]])[] = [
  ['request', [], [...turn, 'step/end', 'turn/end interrupted']],
  [
    'policy c1',
    [],
    [
      'tool/call',
      'tool/result TOOL_NOT_STARTED',
      'tool/result TOOL_NOT_STARTED',
      'step/end',
      'turn/end interrupted',
    ],
  ],
  [
    'start c1',
    [],
    [
      'tool/call',
      'tool/start',
      'tool/result TOOL_OUTCOME_UNKNOWN',
      'tool/result TOOL_NOT_STARTED',
      'step/end',
      'turn/end interrupted',
    ],
  ],
  [
    'end c1',
    ['c1'],
    [
      'tool/call',
      'tool/start',
      'tool/result TOOL_OUTCOME_UNKNOWN',
      'tool/result TOOL_NOT_STARTED',
      'step/end',
      'turn/end interrupted',
    ],
  ],
  [
    'start c2',
    ['c1'],
    [
      'tool/call',
      'tool/start',
      'tool/result ok',
      'tool/call',
      'tool/start',
      'tool/result TOOL_OUTCOME_UNKNOWN',
      'step/end',
      'turn/end interrupted',
    ],
  ],
  [
    'idle',
    ['c1', 'c2'],
    [
      'tool/call',
      'tool/start',
      'tool/result ok',
      'tool/call',
      'tool/start',
      'tool/result ok',
      'step/end',
      'step/start',
      'assistant/message',
      'step/end',
      'turn/end completed',
    ],
  ],
]

for (const [place, effects, log] of deaths) {
  testStores(
    `a program that is killed at "${place}" leaves a log that says what is known of each call`,
    async (t, store) => {
      const child = setup(t, store)
      const program = child.start(place)
      assert.equal(await nextLine(program), `at ${place}`)
      await program.kill()
      assert.deepEqual(child.effects(), effects)
      const beginning = place === 'request' ? [] : [...turn, 'assistant/message']
      assert.deepEqual(outline(await recover(child.open)), [...beginning, ...log])
    },
  )
}

testStores(
  'the second program is told who has the session, and goes on with it when the first was killed',
  async (t, store) => {
    const { start, open } = setup(t, store)
    const first = start('hold')
    assert.equal(await nextLine(first), '1')
    const ctx = await open()
    const persistence = ctx.sessionPersistence
    const refusal = {
      code: 'SESSION_HELD',
      message: new RegExp(`^the session is open in another program: process ${first.process.pid} since 20`),
    }
    await assert.rejects(persistence.prepare(id), refusal)
    const view = await persistence.inspect(id)
    assert.equal(view.holder?.pid, first.process.pid)
    assert.match(view.readOnly ?? '', /^it is open in another program: process \d+ since 20/)
    first.process.stdin?.write('second\n')
    assert.equal(await nextLine(first), '2')
    assert.equal((await persistence.inspect(id)).events.length, 2)
    await first.kill()
    const preparation = await persistence.prepare(id)
    assert.equal(preparation.session.length, 3)
    await ctx.dispose()
  },
)

testStores('a program that is only stopped keeps its session', async (t, store) => {
  const { start, open } = setup(t, store)
  const first = start('hold')
  await nextLine(first)
  first.process.kill('SIGSTOP')
  const ctx = await open()
  await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_HELD' })
  first.process.kill('SIGCONT')
  first.process.stdin?.write('more\n')
  assert.equal(await nextLine(first), '2')
  first.process.stdin?.end('stop\n')
  await once(first.process, 'exit')
  const preparation = await ctx.sessionPersistence.prepare(id)
  assert.equal(preparation.session.length, 3)
  await ctx.dispose()
})

testStores(
  'of two programs that resume a session at once, one gets it and the other leaves it alone',
  async (t, store) => {
    const { start, open } = setup(t, store)
    const owner = start('hold')
    await nextLine(owner)
    await owner.kill()
    const rivals = [start('hold'), start('hold')]
    const lines = await Promise.all(rivals.map(nextLine))
    assert.deepEqual(lines.toSorted(), ['3', 'error SESSION_HELD'])
    for (const rival of rivals) await rival.kill()
    const ctx = await open()
    assert.equal((await ctx.sessionPersistence.inspect(id)).events.length, 3)
    await ctx.dispose()
  },
)

testStores(
  'a program whose session a person took over is told so, and its work stays out of the log',
  async (t, store) => {
    const { start, open } = setup(t, store)
    const first = start('hold')
    await nextLine(first)
    const ctx = await open()
    const { holder } = await ctx.sessionPersistence.inspect(id)
    assert.ok(holder !== undefined)
    const preparation = await ctx.sessionPersistence.prepare(id, undefined, { takeFrom: holder })
    const { session } = preparation
    ctx.sessions.enter(session)
    ctx.sessions.announce(session)
    session.append('user/message', userFact('taken'), { surfaceOp: 'append' })
    await ctx.sessions.flush(session)
    first.process.stdin?.write('too late\n')
    assert.equal(await nextLine(first), 'error SESSION_HELD')
    await ctx.dispose()
    const after = await open()
    assert.deepEqual((await after.sessionPersistence.inspect(id)).events, session.events)
    await after.dispose()
  },
)

/** Runs a program that may not be installed. */
function runTool(name: string, ...args: readonly string[]) {
  return spawnSync(name, args, { encoding: 'utf8', maxBuffer: 1 << 30 })
}

test('the tools of Zstandard and jq read a log whole', async t => {
  if (runTool('zstdcat', '--version').error !== undefined) return t.skip('zstdcat is not installed')
  const { root, start, open } = setup(t)
  const child = start('append')
  for (let acks = 0; acks < 30; acks += 1) await nextLine(child)
  await child.kill()
  const ctx = await open()
  const { header, events } = await ctx.sessionPersistence.load(id)
  const path = ctx.sessionPersistence.locate(header) ?? ''
  assert.equal(dirname(dirname(dirname(path))), root)
  const { status, stdout } = runTool('zstdcat', path)
  assert.equal(status, 0)
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { type?: string; seq?: number })
  assert.deepEqual(lines[0], { type: 'session', ...header, toolStart: true })
  assert.deepEqual(
    lines.flatMap(({ seq }) => seq ?? []),
    events.map(({ seq }) => seq),
  )
  await ctx.dispose()
  if (runTool('jq', '--version').error !== undefined) return
  const counted = runTool('sh', '-c', `zstdcat '${path}' | jq -s 'map(select(.seq != null)) | length'`)
  assert.equal(counted.stdout.trim(), String(events.length))
})
