import { breaches } from './sandbox-breaches.ts'
import { escapes } from './sandbox-escapes.ts'
import { openPlace } from './sandbox-place.ts'

// Tries every way out of a shared sandbox as whoever it is started as, and prints what came of each, line by line.
for (const { name, command } of escapes) {
  await using place = await openPlace({ hasOldServers: true })
  const before = place.snapshot()
  const ended = await place.shared(command)
  console.log(JSON.stringify({ name, found: await breaches(place, ended, before) }))
  // Copies of folders that are hidden cannot be removed as they are.
  await place.bare('chmod -R u+rwX ..')
}
