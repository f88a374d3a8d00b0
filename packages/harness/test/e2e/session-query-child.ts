import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { sessionQuery } from '../../src/plugins/session-query/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { logOf, userFact } from '../../src/testing/index.ts'

// A program that writes sessions, or searches them once for each line it is given.

const [role = '', home = ''] = process.argv.slice(2)

function tell(line: string): void {
  writeSync(1, `${line}\n`)
}

const ctx = new Context()
await ctx.plugin(SessionStore)
await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
await ctx.plugin(sessionQuery, { path: join(home, 'cache', 'index.sqlite') })

if (role === 'write') {
  const counts = new Map<string, number>()
  for (let round = 0; round < 60; round++) {
    const id = SessionId(`s${round % 6}`)
    const length = counts.get(id) ?? 0
    if (length === 0) await ctx.sessionPersistence.create({ version: 0, id, createdAt: round })
    const events = logOf(['user/message', userFact(`needle ${round} ${'hay '.repeat(500)}`)])
    await ctx.sessionPersistence.append(
      id,
      events.map(event => ({ ...event, seq: length })),
    )
    counts.set(id, length + 1)
    tell(String(round + 1))
  }
}

if (role === 'search') {
  tell('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    const page = await ctx.sessionQuery.searchSessions(
      { query: line, limit: 100 },
      { onProgress: (done, total) => tell(`reading ${done} of ${total}`) },
    )
    const matched = page.sessions.reduce((sum, session) => sum + session.matched, 0)
    tell(`found ${matched} left ${page.left.length}`)
  }
}

await ctx.dispose()
