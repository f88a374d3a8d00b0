// Preloaded into a command: writes down each module that it loads and each process that it starts, at once.
import { appendFileSync } from 'node:fs'
import { ChildProcess } from 'node:child_process'
import { registerHooks } from 'node:module'

const { START_RECORD: record } = process.env
const { spawn } = ChildProcess.prototype

ChildProcess.prototype.spawn = function (options) {
  appendFileSync(record, `process ${options.file}\n`)
  return spawn.call(this, options)
}
registerHooks({
  load(url, context, next) {
    appendFileSync(record, `module ${url}\n`)
    return next(url, context)
  },
})
