import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bubblewrapArgv } from './bubblewrap.ts'
import type { Bubblewrap } from './bubblewrap.ts'
import type { Environment } from './config.ts'
import type { Machine } from './env.ts'
import { SandboxError } from './errors.ts'
import { RecordFile, sweepPlaceholders } from './placeholder-record.ts'
import { Placeholders } from './placeholders.ts'
import { missingReason, refusedReason, systemReason } from './reason.ts'
import { seatbeltProfile, seatbeltProgram } from './seatbelt.ts'
import type { ConfinedArgv, ConfineOptions, SandboxExecutionPolicy, SandboxReadiness } from './service.ts'
import { hiddenRefusals, kernelRefusals, networkRefusals } from './signatures.ts'
import { removeFolder, sweepTempFolders } from './temp-folders.ts'
import { makeToolFolders, noTries, toolVariables } from './tool-folders.ts'
import { prepareWorld } from './world.ts'

type Argv = readonly [program: string, ...args: string[]]

/** What this machine confines with, or why it cannot. */
type Runner =
  | { readonly kind: 'bubblewrap'; readonly bubblewrap: Bubblewrap }
  | { readonly kind: 'seatbelt' }
  | { readonly kind: 'none'; readonly reason: string }

const probeLimitMs = 5000

/** Not by PATH: a folder of it may be one that a model writes to. */
const programFolders = [
  '/usr/bin',
  '/bin',
  '/usr/local/bin',
  '/run/current-system/sw/bin',
  '/nix/var/nix/profiles/default/bin',
]

const deniedByBubblewrap = [...kernelRefusals, ...hiddenRefusals]

/** Confines with what this machine has: bubblewrap on Linux, seatbelt on macOS. Full access is not its matter. */
export class Confiner {
  readonly #machine: Machine
  readonly #env: Environment
  readonly #placeholders = new Placeholders()
  readonly #temps = new Set<string>()
  /** Of sessions whose commands have had a network: what they fetched is there. */
  readonly #fetched = new Set<string>()
  readonly #found: { runner?: Promise<Runner> } = {}

  constructor(machine: Machine, env: Environment) {
    this.#machine = machine
    this.#env = env
  }

  async readiness(): Promise<SandboxReadiness> {
    const runner = await this.#runner()
    return runner.kind === 'none'
      ? { isReady: false, reason: runner.reason }
      : { isReady: true, runner: runner.kind, enforcement: 'full' }
  }

  async confine(argv: Argv, policy: SandboxExecutionPolicy, options: ConfineOptions): Promise<ConfinedArgv> {
    const { mode, tempFolder } = policy
    const runner = await this.#runner()
    if (runner.kind === 'none')
      throw new SandboxError('SANDBOX_UNAVAILABLE', `${mode} cannot be enforced here: ${runner.reason}`)
    if (tempFolder !== undefined) this.#makeTemp(tempFolder)
    const variables = this.#variables(policy)
    if (runner.kind === 'seatbelt') return bySeatbelt(argv, policy, variables)
    const world = prepareWorld(policy, this.#placeholders, { ...options, variables, uid: this.#machine.uid })
    return {
      argv: bubblewrapArgv(runner.bubblewrap, world, argv),
      enforcement: world.isWhole ? 'full' : 'partial',
      denialSignatures: deniedByBubblewrap,
      networkSignatures: policy.network ? [] : networkRefusals,
      runnerFailureRules: [{ exitCodes: [1], fatalSignatures: ['bwrap: '] }],
    }
  }

  /** Takes away what stands in the world for this plugin alone. */
  close(): void {
    this.#placeholders.release()
    // What they could not take away, since it was in use here.
    for (const parent of this.#parents()) sweepPlaceholders(parent, this.#machine)
    for (const folder of this.#temps) this.forget(folder)
  }

  /** Nobody needs the temporary folder of a session any more. */
  forget(tempFolder: string): void {
    this.#fetched.delete(tempFolder)
    if (this.#temps.delete(tempFolder)) removeFolder(tempFolder)
  }

  #makeTemp(tempFolder: string): void {
    if (!this.#temps.has(tempFolder)) {
      const parent = dirname(tempFolder)
      if (this.#temps.size === 0) {
        sweepTempFolders(parent, this.#machine)
        sweepPlaceholders(parent, this.#machine)
        this.#placeholders.recordIn(new RecordFile(tempFolder))
      }
      this.#temps.add(tempFolder)
    }
    const isNew = mkdirSync(tempFolder, { recursive: true, mode: 0o700 }) !== undefined
    const { userHome } = this.#machine
    if (isNew && userHome !== undefined) makeToolFolders({ tempFolder, userHome, env: this.#env })
  }

  #variables(policy: SandboxExecutionPolicy): Readonly<Record<string, string>> {
    const { network, tempFolder } = policy
    const { userHome } = this.#machine
    if (tempFolder === undefined || userHome === undefined) return network ? {} : noTries
    if (network) this.#fetched.add(tempFolder)
    const place = { tempFolder, userHome, env: this.#env }
    return toolVariables(policy, place, { hasFetched: this.#fetched.has(tempFolder) })
  }

  #parents(): ReadonlySet<string> {
    return new Set([...this.#temps].map(folder => dirname(folder)))
  }

  async #runner(): Promise<Runner> {
    return await (this.#found.runner ??= findRunner(this.#machine))
  }
}

async function findRunner({ platform }: Machine): Promise<Runner> {
  if (platform === 'darwin') {
    return existsSync(seatbeltProgram)
      ? { kind: 'seatbelt' }
      : { kind: 'none', reason: missingReason('sandbox-exec') }
  }
  if (platform !== 'linux') return { kind: 'none', reason: systemReason(platform) }
  const program = programFolders.map(folder => join(folder, 'bwrap')).find(isProgram)
  if (program === undefined) return { kind: 'none', reason: missingReason('bubblewrap') }
  const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger'].filter(path => existsSync(path))
  let refusal = ''
  for (const [userNamespace, lastUserNamespace] of [
    [true, true],
    [true, false],
    [false, false],
  ] as const) {
    const bubblewrap = { program, kernelSettings, userNamespace, lastUserNamespace }
    const failure = await failureOf(bubblewrap)
    if (failure === undefined) return { kind: 'bubblewrap', bubblewrap }
    refusal = refusal === '' ? failure : refusal
  }
  return { kind: 'none', reason: refusedReason(refusal) }
}

/** What bubblewrap says where it cannot run anything; it is asked for all that a confined command needs. */
async function failureOf(bubblewrap: Bubblewrap): Promise<string | undefined> {
  const world = {
    mounts: [{ path: '/tmp', kind: 'empty' }],
    network: false,
    variables: {},
    terminal: false,
  } as const
  const [program, ...args] = bubblewrapArgv(bubblewrap, world, ['/bin/sh', '-c', ':'])
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const options = { cwd: '/', env: {}, timeout: probeLimitMs, killSignal: 'SIGKILL' } as const
  execFile(program, args, options, (error, _stdout, stderr) => {
    if (error === null) return resolve(undefined)
    const [line = ''] = stderr.split('\n')
    return resolve(line.replace(/^bwrap: /, '') || error.message)
  })
  return await promise
}

function bySeatbelt(
  argv: Argv,
  policy: SandboxExecutionPolicy,
  variables: Readonly<Record<string, string>>,
): ConfinedArgv {
  const { tempFolder } = policy
  const all = { ...variables, ...(tempFolder !== undefined && { TMPDIR: tempFolder }) }
  const settings = Object.entries(all).map(([name, value]) => `${name}=${value}`)
  return {
    argv: [seatbeltProgram, '-p', seatbeltProfile(policy), '/usr/bin/env', ...settings, ...argv],
    enforcement: 'full',
    denialSignatures: kernelRefusals,
    networkSignatures: policy.network ? [] : networkRefusals,
    runnerFailureRules: [{ fatalSignatures: ['sandbox-exec: '] }],
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
