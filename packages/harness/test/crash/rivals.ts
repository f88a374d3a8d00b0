import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SessionId } from '@dsh/protocol'
import type { ProcessIdentity } from '../../src/plugins/persistence/index.ts'
import { startProgram } from '../../src/testing/contracts/store-program.ts'
import type { StoreProgram } from '../../src/testing/contracts/store-program.ts'
import { userFact } from '../../src/testing/index.ts'
import type { Finding } from '../../src/testing/index.ts'
import { examineVictim } from './failpoints.ts'
import { killed, Victim } from './kill.ts'
import { databaseIn } from './media.ts'
import type { MediumName } from './media.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'
import { resume } from './scenarios.ts'

const id = SessionId('s1')

/** Two programs on one session, by the sentence that says what must come of it. */
export const rivalries: Readonly<Record<string, (victim: Victim) => Promise<void>>> = {
  'the second program is told who has the session, sees it grow, and goes on with it when the first was killed':
    async victim => {
      const first = victim.talkTo({ role: 'hold' })
      assert.equal(await first.hear(), '1')
      await inProgram(victim, async program => {
        const { sessionPersistence } = program.ctx
        const pid = first.child.pid
        await assert.rejects(
          sessionPersistence.prepare(id),
          (error: { code: string; holder: { pid: number } }) => {
            assert.equal(error.code, 'SESSION_HELD')
            assert.equal(error.holder.pid, pid)
            return true
          },
        )
        const view = await sessionPersistence.inspect(id)
        assert.match(
          view.readOnly ?? '',
          new RegExp(`^it is open in another program: process ${pid} since 20`),
        )
        first.say('second')
        assert.equal(await first.hear(), '2')
        assert.equal((await sessionPersistence.inspect(id)).events.length, 2)
        await killed(first.child)
        const session = await resume(program)
        session.append('user/message', userFact('third'), { surfaceOp: 'append' })
        await program.ctx.sessions.flush(session)
      })
    },

  'a program that is only stopped keeps its session': async victim => {
    const first = victim.talkTo({ role: 'hold' })
    assert.equal(await first.hear(), '1')
    first.child.kill('SIGSTOP')
    await inProgram(victim, async ({ ctx }) => {
      await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_HELD' })
    })
    first.child.kill('SIGCONT')
    first.say('more')
    assert.equal(await first.hear(), '2')
    const exit = once(first.child, 'exit')
    first.say('stop')
    await exit
  },

  'of two programs that resume a session at once, one gets it and the other leaves it alone':
    async victim => {
      const owner = victim.talkTo({ role: 'hold' })
      await owner.hear()
      await killed(owner.child)
      const rivals = [victim.talkTo({ role: 'hold' }), victim.talkTo({ role: 'hold' })]
      const lines = await Promise.all(rivals.map(rival => rival.hear()))
      assert.deepEqual(lines.toSorted(), ['3', 'error SESSION_HELD'])
      for (const { child } of rivals) await killed(child)
    },

  'a program whose session was taken over writes no more, whatever it tries': async victim => {
    const first = victim.talkTo({ role: 'hold' })
    await first.hear()
    await inProgram(victim, async program => {
      const { holder } = await program.ctx.sessionPersistence.inspect(id)
      assert.ok(holder !== undefined)
      const { session } = await program.ctx.sessionPersistence.prepare(id, undefined, { takeFrom: holder })
      program.ctx.sessions.enter(session)
      program.ctx.sessions.announce(session)
      for (const text of ['taken', 'and kept']) {
        session.append('user/message', userFact(text), { surfaceOp: 'append' })
        await program.ctx.sessions.flush(session)
        first.say('too late')
        assert.equal(await first.hear(), 'error SESSION_HELD')
      }
    })
    first.say('still there')
    assert.match(await first.hear(), /^error (SESSION_HELD|LOCK_LOST|STALE_APPEND)$/)
    await killed(first.child)
    await inProgram(victim, async ({ ctx }) => {
      const { events } = await ctx.sessionPersistence.inspect(id)
      assert.deepEqual(
        events.map(({ type }) => type),
        ['user/message', 'session/end-seed', 'user/message', 'user/message'],
      )
    })
  },

  'a pid that was given again does not keep a session': async victim => {
    const first = victim.talkTo({ role: 'hold' })
    await first.hear()
    await killed(first.child)
    // The pid of this very process, which lives, with the start of the one that was killed.
    changeOwner(victim, owner => ({ ...owner, pid: process.pid }))
    await inProgram(victim, async program => {
      const session = await resume(program)
      session.append('user/message', userFact('mine'), { surfaceOp: 'append' })
      await program.ctx.sessions.flush(session)
    })
  },
}

/** Every rivalry on a medium; what is left by each is examined too. */
export async function letCompete(medium: MediumName): Promise<Row> {
  const tally = new Tally(`two programs on one session (${medium})`)
  for (const [sentence, run] of Object.entries(rivalries)) {
    const victim = new Victim(medium)
    try {
      await run(victim)
      tally.add(sentence, await examineVictim(victim))
    } catch (error) {
      tally.add(sentence, [{ rule: 'available', text: String(error), lost: 0 } satisfies Finding])
    } finally {
      await victim.remove()
    }
  }
  return tally.row
}

async function inProgram(victim: Victim, job: (program: StoreProgram) => Promise<void>): Promise<void> {
  const program = await startProgram({ open: () => victim.watched() })
  try {
    await job(program)
  } finally {
    await program.stop()
  }
}

function changeOwner(victim: Victim, change: (owner: ProcessIdentity) => ProcessIdentity): void {
  const changed = (text: string): string => JSON.stringify(change(JSON.parse(text) as ProcessIdentity))
  if (victim.medium === 'jsonl') {
    const [lock = ''] = globSync(join(victim.home, 'sessions/*/*/lock'))
    writeFileSync(lock, `${changed(readFileSync(lock, 'utf8'))}\n`)
    return
  }
  const database = new DatabaseSync(databaseIn(victim.home))
  const holder = String(database.prepare('SELECT holder FROM sessions').get()?.['holder'])
  database.prepare('UPDATE sessions SET holder = ?').run(changed(holder))
  database.close()
}
