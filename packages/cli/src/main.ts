import { homedir } from 'node:os'
import { basename, isAbsolute, relative, resolve } from 'node:path'
import { parseArguments, pickAction, unknownCommand } from './arguments.ts'
import { commands } from './commands.ts'
import { CliError, quoted } from './errors.ts'
import { Output } from './io.ts'
import type { Io, StopSignal } from './io.ts'

const stopSignals: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** How long something that is still open after the command's end may keep the process alive. */
const lingerMs = 3000

/** Runs one dsh command and resolves with its exit code. */
export async function main(argv: string[]): Promise<number> {
  const io = processIo()
  const code = await dispatch(argv, io).catch(async (error: unknown) => {
    const { reportError } = await import('./report-error.ts')
    return reportError(error, io, { json: argv[0] === 'run' && argv.includes('--json') })
  })
  await io.out.flush()
  const { failure } = io.out
  // A reader that left knows why nothing more came; whoever waits for a full disk does not.
  if (failure !== undefined && code === 0 && errnoOf(failure) !== 'EPIPE')
    io.err.line(`error OUTPUT_CLOSED: standard output could not be written: ${errnoOf(failure)}`)
  await io.err.flush()
  setTimeout(() => process.exit(), lingerMs).unref()
  return failure === undefined ? code : Math.max(code, 1)
}

function errnoOf({ code, message }: NodeJS.ErrnoException): string {
  return code ?? message
}

const versionWords = new Set(['--version', '-V', '-v', 'version'])

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const [word = '--help', ...rest] = argv
  if (versionWords.has(word)) {
    const { default: manifest } = await import('../package.json', { with: { type: 'json' } })
    io.out.line(`dsh ${manifest.version}`)
    return 0
  }
  const asked = word === 'help' ? rest[0] : word
  if (asked === undefined || isHelp(word)) {
    const { overview } = await import('./help.ts')
    io.out.write(overview(commands))
    return 0
  }
  const found = commands.find(({ name }) => name === asked)
  if (found === undefined) throw unknownCommand(asked, commands)
  const typed = word === 'help' ? [...rest.slice(1), '--help'] : rest
  if ('actions' in found && isHelp(typed[0])) {
    const { groupUsage } = await import('./help.ts')
    io.out.write(groupUsage(found))
    return 0
  }
  const { command, rest: given } =
    'actions' in found ? pickAction(found, typed) : { command: found, rest: typed }
  const args = parseArguments(command, given)
  if (args.values.help === true) {
    const { usage } = await import('./help.ts')
    io.out.write(usage(command))
    return 0
  }
  const body = await command.load()
  return await body(args, io)
}

function isHelp(word: string | undefined): boolean {
  return word === '--help' || word === '-h'
}

function processIo(): Io {
  const err = new Output(process.stderr)
  let isKnown: (error: unknown) => boolean = () => false
  process.on('uncaughtException', error => {
    if (isKnown(error)) return
    err.line(`error INTERNAL: ${String(error.stack)}`)
    void err.flush().then(() => process.exit(1))
  })
  return {
    env: process.env,
    get cwd() {
      return workingFolder()
    },
    get home() {
      const home = process.env.DSH_HOME || usualHome()
      return isAbsolute(home) ? home : resolve(workingFolder(), home)
    },
    // Reading it opens it, which a run without a prompt on standard input has no use for.
    get stdin() {
      return process.stdin
    },
    out: new Output(process.stdout),
    err,
    runtime: { node: process.versions.node, path: process.execPath, uid: process.getuid?.() },
    command: typedCommand(process.argv[1] ?? ''),
    onSignal(listener) {
      for (const signal of stopSignals) process.on(signal, listener)
      return () => {
        for (const signal of stopSignals) process.off(signal, listener)
      }
    },
    onUncaught(listener) {
      isKnown = listener
    },
    exit(code) {
      // Where the exit itself waits, for a file that cannot be opened, the next signal ends the process.
      for (const signal of stopSignals) process.removeAllListeners(signal)
      return process.exit(code)
    },
  }
}

function usualHome(): string {
  try {
    return `${homedir()}/.dsh`
  } catch (cause) {
    const fix = 'export DSH_HOME=…   # a folder that you may write'
    throw new CliError('NO_HOME', 'this user has no home folder', { cause, exitCode: 2, fix })
  }
}

function workingFolder(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new CliError('NO_FOLDER', 'the current folder is gone', { cause, exitCode: 2, fix: 'cd' })
  }
}

/** In a checkout there is no `dsh` on the path, so the script itself is named. */
function typedCommand(script: string): string {
  const isCheckout = basename(script) === 'bin.js' && !script.includes('node_modules')
  if (!isCheckout || process.platform === 'win32') return 'dsh'
  return `node ${quoted(scriptFromHere(script))}`
}

function scriptFromHere(script: string): string {
  try {
    const below = relative(process.cwd(), script)
    return below.startsWith('..') ? script : below
  } catch {
    // The folder is gone; that is for whoever needs one to say.
    return script
  }
}
