import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import { thisMachine } from '../../src/plugins/sandbox/env.ts'
import { LocalSandbox } from '../../src/plugins/sandbox/local.ts'
import { LoggedPolicy } from '../../src/plugins/sandbox/policy.ts'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import type { WiderAccess } from '@dsh/harness/tools'
import type { ShellCommand } from '@dsh/harness/plugins/sandbox-shells'
import { WarmShells } from '../../src/plugins/sandbox-shells/local.ts'
import { LocalSubprocess } from '../../src/plugins/subprocess/index.ts'
import { openDoors } from './sandbox-doors.ts'

type Argv = readonly [program: string, ...args: string[]]

export const nobody = 65534
export const bubblewrap = '/usr/bin/bwrap'
const limitMs = 20_000

export interface Ended {
  readonly status: number | null
  readonly output: string
  readonly stderr: string
}

export interface PlaceOptions {
  /** Default: who runs the tests. */
  readonly uid?: number
  readonly mode?: SandboxMode
  /** Its servers have been there for longer than the sandbox waits before it hides their sockets. */
  readonly hasOldServers?: boolean
}

/** A person's machine in small, outside of /tmp: a workspace with a repository, secrets, servers and a process. */
export async function openPlace({ uid, mode = 'workspace-write', hasOldServers = false }: PlaceOptions = {}) {
  const base = realpathSync(mkdtempSync('/var/tmp/dsh-escape-'))
  const mark = base.slice(base.lastIndexOf('/') + 1)
  const at = (path: string): string => join(base, path)
  cpSync(template(), base, { recursive: true })
  writeFileSync(`/tmp/${mark}-there`, 'SECRET')
  const agent = at('outside/agent.sock')
  const sockets = ['home/.docker/run/docker.sock', 'outside/server.sock', 'home/server.sock'].map(at)
  const doors = await openDoors([...sockets, agent, `\0${mark}`], { areOld: hasOldServers })
  if (uid !== undefined) own(base, uid)
  const argvOf = asPerson(uid)
  const victim = await startVictim(argvOf)
  const machine = { ...thisMachine(), uid: uid ?? process.getuid?.(), userHome: at('home') }
  const config = { mode, home: at('dsh'), cwd: at('work'), env: { SSH_AUTH_SOCK: agent } }
  const policies = new LoggedPolicy(config, machine)
  const sandbox = new LocalSandbox(machine)
  const env = { ...environment(at), ...doors.ports, MARK: mark, VICTIM: `${victim.pid}` }
  const start = (argv: Argv): Promise<Ended> => run(argvOf(argv), { cwd: at('work'), env })
  return {
    at,
    mark,
    reached: doors.reached,
    isVictimAlive: () => victim.exitCode === null && victim.signalCode === null,
    async confined(command: string, access?: WiderAccess): Promise<Ended> {
      const token = Symbol('call')
      if (access !== undefined) policies.grant(token, access)
      const policy = await policies.resolve({ token })
      const { argv } = await sandbox.confine(['/bin/bash', '-c', command], policy)
      // What was made for the command belongs to the one who runs the program.
      if (uid !== undefined) own(base, uid)
      return await start(argv)
    },
    bare: (command: string): Promise<Ended> => start(['/bin/bash', '-c', command]),
    /** In a sandbox that others have used; of who runs the tests. */
    async shared(command: string): Promise<Ended> {
      const subprocess = new LocalSubprocess({ env: {}, pass: [] })
      const limits = { sandboxes: 1, commands: 9, idleMs: limitMs, beginMs: limitMs }
      const shells = new WarmShells({ sandbox, subprocess }, limits)
      const policy = { ...(await policies.resolve({})), sessionId: SessionId(mark) }
      try {
        return await runShared(shells, { command, cwd: at('work'), policy, env })
      } finally {
        await shells.close()
        await subprocess.close()
      }
    },
    snapshot: () => snapshot(base),
    /** Ends the plugin's part, and leaves the files. */
    close: () => sandbox.close(),
    async [Symbol.asyncDispose]() {
      victim.kill('SIGKILL')
      sandbox.close()
      doors.close()
      for (const name of [mark, `${mark}-there`]) rmSync(`/tmp/${name}`, { force: true })
      rmSync(base, { recursive: true, force: true })
    },
  }
}

function asPerson(uid: number | undefined): (argv: Argv) => Argv {
  return argv =>
    uid === undefined
      ? argv
      : ['/usr/bin/setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...argv]
}

async function runShared(
  shells: WarmShells,
  command: Pick<ShellCommand, 'command' | 'cwd' | 'policy' | 'env'>,
): Promise<Ended> {
  const capture = { headBytes: 2 ** 20, tailBytes: 2 ** 20 }
  const rest = { shell: '/bin/bash', stdout: capture, stderr: capture, graceMs: limitMs, drainMs: 1000 }
  const deadline = performance.now() + limitMs
  while (performance.now() < deadline) {
    const before = await shells.run({ ...rest, ...command, command: 'touch used; rm used' })
    await before?.handle.done
    if (before === undefined) await pause(5)
    const shell = before && (await shells.run({ ...rest, ...command }))
    if (shell === undefined) continue
    const { handle } = shell
    const timer = setTimeout(() => handle.terminate(), limitMs)
    const { exitCode } = await handle.done
    clearTimeout(timer)
    const [output, stderr] = [handle.collected.stdout, handle.collected.stderr].map(
      text => text?.readFrom(0).text ?? '',
    )
    return { status: exitCode, output: output ?? '', stderr: stderr ?? '' }
  }
  throw new Error('no sandbox stands by')
}

async function startVictim(argvOf: (argv: Argv) => Argv): Promise<ChildProcess> {
  const [program, ...args] = argvOf(['/bin/sleep', '600'])
  const victim = spawn(program, args, { env: { KEY: 'SECRET' }, stdio: 'ignore' })
  await new Promise(resolve => victim.once('spawn', resolve))
  return victim
}

function environment(at: (path: string) => string) {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: at('home'),
    WS: at('work'),
    OUT: at('outside'),
    DSH_DIR: at('dsh'),
    NODE: process.execPath,
    BWRAP: bubblewrap,
    GIT_CONFIG_GLOBAL: '/dev/null',
  }
}

const made: { template?: string } = {}

/** The files of every place, made once. */
function template(): string {
  if (made.template !== undefined) return made.template
  const base = mkdtempSync('/var/tmp/dsh-escape-')
  process.once('exit', () => rmSync(base, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(contents())) {
    mkdirSync(dirname(join(base, path)), { recursive: true })
    writeFileSync(join(base, path), text)
  }
  mkdirSync(join(base, 'home/.docker/run'), { recursive: true })
  makeRepository(join(base, 'work'))
  made.template = base
  return base
}

function contents(): Record<string, string> {
  return {
    'work/file': 'content',
    'work/.vscode/tasks.json': '{}',
    'work/.husky/pre-commit': 'true',
    'work/.husky/_/h': 'true',
    'work/team.gitconfig': '',
    'work/sub/file': 'content',
    'outside/victim': 'SECRET',
    'home/.ssh/id_ed25519': 'SECRET',
    'home/.aws/credentials': 'SECRET',
    'home/.netrc': 'SECRET',
    'home/.config/gh/hosts.yml': 'SECRET',
    'dsh/credentials.json': 'SECRET',
    'dsh/sessions/p/s1/log': 'SECRET',
    'dsh/skills/greet/SKILL.md': 'to read',
  }
}

function makeRepository(folder: string): void {
  const script = `git init -q -b main . && git config user.email a@b.c && git config user.name n &&
    git config core.hooksPath .husky/_ && git config include.path ../team.gitconfig &&
    mkdir -p .git/modules .git/worktrees/tree && git init -q --bare .git/modules/sub && rm -rf sub/.git &&
    echo "gitdir: ../.git/modules/sub" > sub/.git && echo ../.. > .git/worktrees/tree/commondir && touch .git/worktrees/tree/locked &&
    printf '[submodule "sub"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules &&
    git add file .vscode .husky team.gitconfig && git commit -q --no-verify -m start`
  const env = { PATH: process.env['PATH'] ?? '', GIT_CONFIG_GLOBAL: '/dev/null', HOME: folder }
  const { status, stderr } = spawnSync('/bin/sh', ['-c', script], {
    cwd: folder,
    env,
    encoding: 'utf8',
    timeout: limitMs,
  })
  if (status !== 0) throw new Error(`no repository: ${stderr}`)
}

function own(path: string, uid: number): void {
  chownSync(path, uid, uid)
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) own(join(path, entry.name), uid)
    else lchownSync(join(path, entry.name), uid, uid)
}

async function run(
  argv: Argv,
  { cwd, env }: { readonly cwd: string; readonly env: Record<string, string> },
): Promise<Ended> {
  const [program, ...args] = argv
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    timeout: limitMs,
    killSignal: 'SIGKILL',
  })
  const texts = { output: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (texts.output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (texts.stderr += text))
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { status, ...texts }
}

/** Every file that no command may change, with its content. */
function snapshot(base: string): Record<string, string> {
  const found: Record<string, string> = {}
  const kept = [
    'outside',
    'home',
    'dsh/credentials.json',
    'dsh/sessions',
    'work/.vscode',
    'work/.husky',
    'work/team.gitconfig',
    'work/sub/.git',
  ]
  const git = ['hooks', 'config', 'modules', 'worktrees'].map(name => `work/.git/${name}`)
  const absent = ['.idea', '.envrc', '.claude', '.codex', '.dsh'].map(name => `work/${name}`)
  for (const path of [...kept, ...git, ...absent]) look(join(base, path), found)
  const common = join(base, 'work/.git/commondir')
  const text = existsSync(common) ? readFileSync(common, 'utf8') : '.\n'
  return { ...found, commondir: text }
}

/** Folders that only take a name do not count: nothing runs because of one. */
function look(path: string, found: Record<string, string>): void {
  if (!existsSync(path)) return
  try {
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) look(join(path, entry.name), found)
      else if (entry.isFile()) lookAtFile(join(path, entry.name), found)
      else found[join(path, entry.name)] = 'no file'
  } catch {
    found[path] = readFileSync(path, 'utf8')
  }
}

function lookAtFile(path: string, found: Record<string, string>): void {
  const text = readFileSync(path, 'utf8')
  if (!text.startsWith('# Takes this name while dsh runs')) found[path] = text
}
