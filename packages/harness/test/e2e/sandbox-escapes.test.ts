import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { breaches } from './sandbox-breaches.ts'
import type { Place } from './sandbox-breaches.ts'
import { escapes, escapeTables } from './sandbox-escapes.ts'
import type { Escape } from './sandbox-escapes.ts'
import { bubblewrap, nobody, openPlace } from './sandbox-place.ts'

const isMissing = !existsSync(bubblewrap) && process.env['CI'] !== 'true'
const skip = process.platform !== 'linux' ? 'bubblewrap is of Linux' : isMissing ? `no ${bubblewrap}` : false
const isRoot = process.getuid?.() === 0
const people = isRoot
  ? [{ name: 'root' }, { name: 'an ordinary user', uid: nobody }]
  : [{ name: 'an ordinary user' }]

async function tryOut(place: Place, { command }: Escape, how: 'confined' | 'bare'): Promise<string[]> {
  const before = place.snapshot()
  const ended = await place[how](command)
  if (how === 'confined') assert.doesNotMatch(ended.stderr, /^bwrap: /m)
  return await breaches(place, ended, before)
}

for (const { name, uid } of people) {
  describe(`as ${name}`, { skip }, () => {
    test('no way out of the sandbox leads anywhere', { timeout: 300_000 }, async t => {
      for (const escape of escapes)
        await t.test(escape.name, async () => {
          const hasOldServers = escape.command.includes('/server.sock')
          await using place = await openPlace({ hasOldServers, ...(uid !== undefined && { uid }) })
          assert.deepEqual(await tryOut(place, escape, 'confined'), [])
        })
    })

    test('git of the workspace can be used, and runs nothing that a command left', async () => {
      await using place = await openPlace({ ...(uid !== undefined && { uid }) })
      const { status, stderr } = await place.confined(
        'echo more >> file && git add file && git commit -qm more && git switch -qc other && git stash list && git gc -q && git status -s',
      )
      assert.deepEqual([status, stderr], [0, ''])
      for (const { command } of escapes.filter(({ section }) => section === 'Protected paths'))
        await place.confined(command)
      await place.bare('git status; git commit -q --allow-empty -m x; cd sub; git status')
      assert.equal(existsSync(place.at('outside/pwned')), false)
    })
  })
}

test('each way out leads somewhere where there is no sandbox', { skip }, async t => {
  for (const escape of escapes.filter(({ control }) => control === undefined))
    await t.test(escape.name, async () => {
      await using place = await openPlace()
      assert.notDeepEqual(await tryOut(place, escape, 'bare'), [])
    })
})

test('the page lists what is tried and what holds', () => {
  const page = readFileSync(new URL('../../../../docs/reference/sandbox-escapes.md', import.meta.url), 'utf8')
  assert.ok(page.includes(escapeTables(escapes)), escapeTables(escapes))
})
