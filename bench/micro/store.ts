import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { Context } from '@dsh/harness/kernel'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { SessionStore } from '@dsh/harness/session'
import { report } from '../figure.ts'
import { medianOf, wallOf } from '../measure.ts'
import { growTo } from '../session-log.ts'

const root = mkdtempSync(join(tmpdir(), 'dsh-bench-'))

async function withStore(folder: string): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root: join(root, folder) })
  return ctx
}

/** One barrier and one bare fsync of as many bytes, turn by turn. */
async function barriers(): Promise<{ readonly flush: number; readonly bare: number }> {
  const ctx = await withStore('barrier')
  const session = ctx.sessions.create(SessionId('s'), { meta: { cwd: '/srv' } })
  const file = openSync(join(root, 'bare'), 'a')
  const bytes = Buffer.alloc(300, 1)
  const flush: number[] = []
  const bare: number[] = []
  for (let step = 1; step <= 300; step++) {
    session.append('step/start', { turn: 1, step })
    session.append('step/end', { turn: 1, step })
    const begin = performance.now()
    await ctx.sessions.flush(session)
    const middle = performance.now()
    writeSync(file, bytes)
    fsyncSync(file)
    flush.push(middle - begin)
    bare.push(performance.now() - middle)
  }
  closeSync(file)
  await ctx.dispose()
  return { flush: medianOf(flush.slice(50)), bare: medianOf(bare.slice(50)) }
}

const { flush, bare } = await barriers()
report({ name: 'barrier: append and flush', value: flush, unit: 'ms', of: 'wall' })
report({ name: 'bare write and fsync', value: bare, unit: 'ms', of: 'wall' })
report({ name: 'barrier against bare fsync', value: flush / bare, unit: '×', of: 'ratio' })

const sessions = 300
const ctx = await withStore('list')
for (let index = 0; index < sessions; index++) {
  const session = ctx.sessions.create(SessionId(`s${index}`), { meta: { cwd: `/srv/${index % 10}` } })
  growTo(session, 100)
}
await ctx.dispose()

report({
  name: `first page of ${sessions} sessions`,
  value: await wallOf(async () => {
    const reader = await withStore('list')
    return async () => {
      const rows = await reader.sessionPersistence.list()
      if (rows.length !== sessions) throw new Error(`${rows.length} rows instead of ${sessions}`)
    }
  }),
  unit: 'ms',
  of: 'wall',
  budget: 100,
})

rmSync(root, { recursive: true })
