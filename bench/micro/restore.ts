import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { Context } from '@dsh/harness/kernel'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { Session, SessionStore } from '@dsh/harness/session'
import { report } from '../figure.ts'
import { cpuOf } from '../measure.ts'
import { growTo } from '../session-log.ts'

const length = 50_000
const id = SessionId('s')
const root = mkdtempSync(join(tmpdir(), 'dsh-bench-'))

async function withStore(): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root })
  return ctx
}

const ctx = await withStore()
const session = ctx.sessions.create(id, { meta: { cwd: '/srv' } })
growTo(session, length)
await ctx.sessions.flush(session)
const lines = JSON.stringify(session.events)
const { header } = session
await ctx.dispose()

const parsed = (): SessionEvent[] => JSON.parse(lines) as SessionEvent[]

report({
  name: `restore of ${length.toLocaleString('en')} parsed events`,
  value:
    (await cpuOf(() => {
      const events = parsed()
      return () => Session.fromRestore(id, events, header)
    })) / 1000,
  unit: 'ms',
  of: 'CPU',
  budget: 120,
})

report({
  name: 'the same as a copied seed',
  value:
    (await cpuOf(() => {
      const events = parsed()
      return () => Session.create(id, events, header)
    })) / 1000,
  unit: 'ms',
  of: 'CPU',
  budget: 250,
})

report({
  name: 'the same from disk',
  value:
    (await cpuOf(async () => {
      const cold = await withStore()
      return async () => {
        const prepared = await cold.sessionPersistence.prepare(id)
        prepared[Symbol.dispose]()
      }
    })) / 1000,
  unit: 'ms',
  of: 'CPU',
  budget: 450,
})

rmSync(root, { recursive: true })
