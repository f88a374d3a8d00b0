import { SessionId } from '@dsh/protocol'
import { openPlace, seqOf } from './rewind-place.ts'

// node rewind-child.ts BASE take|rewind — works until it is killed.
const [base = '', what] = process.argv.slice(2)
const ends: (() => Promise<void>)[] = []
const place = await openPlace({ after: end => void ends.push(end) }, { base, sessionId: 's1' })
const { ctx, agent, turn, at } = place
process.send?.('ready')
if (what === 'rewind') {
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), {
    scope: 'files',
    childId: SessionId('child'),
  })
} else {
  const { writeFile } = await import('node:fs/promises')
  for (let round = 0; ; round++) {
    await turn(async () => {
      for (let file = 0; file < 40; file++) await writeFile(at(`f${file}`), `${round} ${file}`.repeat(200))
    })
  }
}
process.send?.('done')
for (const end of ends.toReversed()) await end()
process.disconnect()
