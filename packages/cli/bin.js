#!/usr/bin/env node
// Plain JavaScript that parses on Node 20: an older Node must get as far as starting a newer one.
import { existsSync, mkdirSync } from 'node:fs'
import * as module from 'node:module'
import { constants, homedir } from 'node:os'
import { dirname, resolve } from 'node:path'

const [major, minor] = process.versions.node.split('.').map(Number)
if (module.registerHooks && (major > 22 || minor >= 19)) await run()
else await startNewerNode()

async function run() {
  endWithWrapper()
  // An empty one is none: else the home would lie in the root folder, and everything in the home.
  if (process.env.HOME === '') delete process.env.HOME
  muteExperimentalWarnings()
  // It looks at the home and leaves it as it is.
  if (process.argv[2] !== 'doctor') enableCompileCache()
  const inCheckout = existsSync(new URL('src/main.ts', import.meta.url))
  resolveToThisCopy(inCheckout)
  const { main } = await (inCheckout ? import('./src/main.ts') : import('./dist/main.js'))
  process.exitCode = await main(process.argv.slice(2))
}

/** The wrapper holds the other end of this pipe, so its end is the wrapper's end, even by SIGKILL. */
function endWithWrapper() {
  const fd = process.env.DSH_WRAPPER_FD
  if (!fd) return
  delete process.env.DSH_WRAPPER_FD
  const { Socket } = process.getBuiltinModule('node:net')
  const pipe = new Socket({ fd: Number(fd) })
  pipe.on('error', () => {})
  pipe.on('close', () => {
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.exit(143), 5000).unref()
  })
  pipe.resume().unref()
}

function muteExperimentalWarnings() {
  const { emitWarning } = process
  process.emitWarning = (warning, ...rest) => {
    const known =
      rest[0] === 'ExperimentalWarning' &&
      /^(SQLite|Type Stripping|vm\.USE_MAIN_CONTEXT_DEFAULT_LOADER) /.test(String(warning))
    if (!known) emitWarning.call(process, warning, ...rest)
  }
}

/** A home that cannot be written costs the cache, nothing else. */
function enableCompileCache() {
  try {
    const cache = resolve(process.env.DSH_HOME || `${homedir()}/.dsh`, 'cache')
    makeFolders(cache)
    module.enableCompileCache(cache)
  } catch {
    // Without a cache.
  }
}

/** The recursive mkdir of Node never returns below /proc, or where the current folder is gone. */
function makeFolders(path) {
  const make = () => existsSync(path) || mkdirSync(path, { mode: 0o700 })
  try {
    make()
  } catch (error) {
    if (error.code !== 'ENOENT' || dirname(path) === path) throw error
    makeFolders(dirname(path))
    make()
  }
}

/** Sends `@dsh/*`, whoever imports it, to the running copy: a plugin loaded later meets the same kernel. */
function resolveToThisCopy(inCheckout) {
  module.registerHooks({
    resolve(specifier, context, next) {
      if (!specifier.startsWith('@dsh/')) return next(specifier, context)
      if (inCheckout) {
        const conditions = [...context.conditions, 'dsh-source']
        return next(specifier, { ...context, conditions, parentURL: import.meta.url })
      }
      const bundled = new URL(`dist/${specifier}.js`, import.meta.url)
      return existsSync(bundled) ? { url: bundled.href, shortCircuit: true } : next(specifier, context)
    },
  })
}

async function startNewerNode() {
  const newer = newerNode()
  if (!newer) {
    const found = process.versions.node
    process.stderr.write(`dsh needs Node 22.19 or newer, found ${found}; get it from https://nodejs.org\n`)
    process.exit(2)
  }
  const { spawn } = await import('node:child_process')
  const child = spawn(newer, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: { ...process.env, DSH_WRAPPER_FD: '3' },
  })
  // A terminal sends SIGINT to the whole group: passing it on would make one Ctrl-C two.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code))
}

/** The binary of the npm package `node`, which a checkout installs; none where that is the one too old. */
function newerNode() {
  if (process.env.DSH_WRAPPER_FD) return undefined
  const require = module.createRequire(import.meta.url)
  try {
    return require.resolve(`node/${require('node/package.json').bin.node}`)
  } catch {
    return undefined
  }
}
