import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { lintLog } from '../../src/core/invariants/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { text } from '../../src/plugins/llm-scripted/index.ts'
import { retry } from '../../src/plugins/retry/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { createHarness } from '../../src/testing/index.ts'
import { route, turn } from './composed.ts'

interface KeptLog {
  readonly id: SessionId
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
}

const fixtures = join(import.meta.dirname, '../fixtures')
const formats = globSync('format-*', { cwd: fixtures })

/** The plugin whose events the logs hold. */
const shelf = {
  name: 'shelf',
  inject: ['sessions'],
  apply(ctx: Context) {
    ctx.sessions.registerEventType({ type: 'shelf/note' as never, ignorable: true })
    ctx.sessions.registerEventType({ type: 'shelf/must' as never })
  },
}

function keptLogs(format: string): KeptLog[] {
  const folder = join(fixtures, format, 'events')
  return globSync('*.jsonl', { cwd: folder }).map(file => {
    const lines = readFileSync(join(folder, file), 'utf8').trimEnd().split('\n')
    const [header, ...events] = lines.map(line => JSON.parse(line) as unknown)
    return {
      id: SessionId(basename(file, '.jsonl')),
      header: header as SessionHeader,
      events: events as SessionEvent[],
    }
  })
}

async function open(t: TestContext, format: string) {
  const root = mkdtempSync(join(tmpdir(), 'dsh-format-'))
  cpSync(join(fixtures, format, 'sessions'), root, { recursive: true })
  const harness = await createHarness()
  await harness.ctx.plugin(retry)
  await harness.ctx.plugin(storeJsonl, { root })
  await harness.ctx.plugin(shelf)
  t.after(async () => {
    await harness.ctx.dispose()
    rmSync(root, { recursive: true })
  })
  return { ...harness, root, sessions: harness.ctx.sessionPersistence }
}

/** Every file below a folder, by its content. */
function contents(root: string): Record<string, string> {
  const files = globSync('**/*', { cwd: root }).filter(file => statSync(join(root, file)).isFile())
  return Object.fromEntries(
    files.map(file => [
      file,
      createHash('sha256')
        .update(readFileSync(join(root, file)))
        .digest('hex'),
    ]),
  )
}

test('there are kept logs of every format so far', () => {
  assert.deepEqual(formats, ['format-0'])
  for (const format of formats) assert.equal(keptLogs(format).length, 5)
})

for (const format of formats) {
  test(`the logs of ${format} are listed, and read event by event as they were written`, async t => {
    const { sessions, root } = await open(t, format)
    const before = contents(root)
    const logs = keptLogs(format)
    const rows = await sessions.list()
    assert.deepEqual(rows.map(({ id }) => id).toSorted(), logs.map(({ id }) => id).toSorted())
    for (const row of rows) assert.ok('header' in row, JSON.stringify(row))
    for (const { id, header, events } of logs) {
      const stored = await sessions.readFrom(id, 0)
      assert.deepEqual(stored.header, header, id)
      assert.deepEqual(stored.events, events, id)
      const seen = await sessions.inspect(id)
      assert.deepEqual(seen.events.slice(0, events.length), events, id)
      assert.equal(seen.readOnly, undefined, id)
      assert.deepEqual(lintLog(seen.events), [], id)
    }
    assert.deepEqual(contents(root), before)
  })

  test(`the sessions of ${format} go on`, async t => {
    const { ctx, adapter, sessions } = await open(t, format)
    for (const { id, events } of keptLogs(format)) {
      const handle = await ctx.agents.resume({ resumeSessionId: id, agentOptions: route })
      const { agent } = handle
      assert.deepEqual(agent.session.flagged, [], id)
      assert.deepEqual([...agent.session.events].slice(0, events.length), events, id)
      // One for what was said before the program ended, and for what waited behind it.
      adapter.push(text('still here'), text('still here'), text('still here'))
      await turn(agent, 'are you there?')
      const end = [...agent.session.since(0)].findLast(event => event.type === 'turn/end')
      assert.equal(end?.data.reason.kind, 'completed', id)
      assert.deepEqual(lintLog(agent.session.events), [], id)
      assert.ok(agent.session.messages.length > 0, id)
      await handle.dispose()
      const stored = await sessions.readFrom(id, 0)
      assert.equal(stored.events.length, agent.session.length, id)
    }
  })

  test(`the pictures and long texts of ${format} are there`, async t => {
    const { ctx } = await open(t, format)
    const { agent } = await ctx.agents.resume({ resumeSessionId: SessionId('whole'), agentOptions: route })
    const blocks = agent.session.messages.flatMap(({ content }) => content)
    const pictures = blocks.flatMap(block => (block.type === 'image' ? [block.attachment] : []))
    assert.equal(pictures.length, 1)
    for (const { sha256, bytes } of pictures)
      assert.equal((await agent.session.artifacts.get(sha256))?.length, bytes)
    const longest = Math.max(...agent.session.events.map(event => JSON.stringify(event.data).length))
    assert.ok(longest > 65_536)
  })
}
