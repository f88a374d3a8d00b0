// Loaded before dsh by tests: lets a call of the system fail as a full disk would, writes down who is called, or makes
// long waits short.
import dns from 'node:dns'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'

const { DSH_TEST_FULL_AFTER: fullAfter, DSH_TEST_CONNECTS: connects, DSH_TEST_HURRY: hurry } = process.env

if (fullAfter !== undefined) {
  let writes = 0
  const { writeSync } = fs
  fs.writeSync = (fd, ...rest) => {
    if (fd > 2 && ++writes > Number(fullAfter))
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), {
        code: 'ENOSPC',
        syscall: 'write',
      })
    return writeSync(fd, ...rest)
  }
}

if (connects !== undefined) {
  const note = what => fs.appendFileSync(connects, `${what}\n`)
  const { connect } = net.Socket.prototype
  net.Socket.prototype.connect = function (...args) {
    const [first] = args.flat()
    note(typeof first === 'object' ? `connect ${first.host}:${first.port}` : `connect ${first}`)
    return connect.apply(this, args)
  }
  const { lookup } = dns
  dns.lookup = (name, ...rest) => {
    note(`lookup ${name}`)
    return lookup(name, ...rest)
  }
}

if (hurry !== undefined) {
  const shorter = ms => (ms >= 100 && ms <= 20_000 ? ms / Number(hurry) : ms)
  const { setTimeout } = timers
  timers.setTimeout = (callback, ms, ...rest) => setTimeout(callback, shorter(ms), ...rest)
  globalThis.setTimeout = timers.setTimeout
  const { setTimeout: sleep } = timersPromises
  timersPromises.setTimeout = (ms, ...rest) => sleep(shorter(ms), ...rest)
}

syncBuiltinESMExports()
