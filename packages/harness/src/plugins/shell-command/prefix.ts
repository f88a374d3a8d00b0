import { lossesOf } from './destructions.ts'
import { hasHarmlessSurroundings, hasPlainWords } from './harmless.ts'
import { programOf } from './program.ts'
import type { ShellCommand } from './program.ts'
import { shells, wrappers } from './wrappers.ts'

/** Programs that do what their first operand says, and how many more words make one deed of some of these. */
const tools: Readonly<Record<string, readonly string[]>> = {
  git: ['stash', 'remote', 'worktree', 'notes'],
  npm: ['run', 'run-script'],
  pnpm: ['run'],
  yarn: ['run', 'workspace'],
  bun: ['run', 'pm'],
  deno: [],
  cargo: [],
  rustup: [],
  go: ['tool', 'mod', 'work'],
  docker: ['compose', 'image', 'container', 'network', 'volume', 'buildx'],
  podman: [],
  kubectl: ['get', 'rollout'],
  helm: [],
  gh: ['pr', 'issue', 'run', 'repo', 'release', 'workflow'],
  make: [],
  just: [],
  rake: [],
  gradle: [],
  gradlew: [],
  mvn: [],
  dotnet: [],
  mix: [],
  bundle: ['exec'],
  composer: [],
  pip: [],
  pip3: [],
  uv: ['pip', 'run'],
  poetry: ['run'],
  terraform: [],
  brew: [],
  apt: [],
  'apt-get': [],
  systemctl: [],
  npx: [],
  pnpx: [],
  bunx: [],
  uvx: [],
}

/** Deeds that run whatever they are given. */
const openEnded = new Set([
  'git config',
  'git submodule',
  'git filter-branch',
  'git bisect',
  'git rebase',
  'git difftool',
  'git mergetool',
  'git grep',
  'npm exec',
  'npm config',
  'npm x',
  'pnpm exec',
  'pnpm dlx',
  'yarn exec',
  'yarn dlx',
  'yarn node',
  'bun x',
  'bun exec',
  'docker run',
  'docker exec',
  'docker compose run',
  'docker compose exec',
  'podman run',
  'podman exec',
  'kubectl exec',
  'kubectl run',
  'kubectl debug',
  'deno eval',
  'deno run',
  'go run',
  'go tool',
  'uv run',
  'poetry run',
  'bundle exec',
  'gh api',
  'gh alias',
  'cargo run',
  'mvn exec:exec',
])

const interpreters = new Set([
  'node',
  'python',
  'python2',
  'python3',
  'perl',
  'ruby',
  'php',
  'lua',
  'tsx',
  'ts-node',
  'Rscript',
])

/** What a name says too little of: it runs, destroys or sends anything. */
const never = new Set([
  ...Object.keys(wrappers),
  ...Object.keys(shells),
  'fish',
  'csh',
  'tcsh',
  'pwsh',
  'su',
  'ssh',
  'scp',
  'sftp',
  'rsync',
  'curl',
  'wget',
  'nc',
  'ncat',
  'socat',
  'telnet',
  'rm',
  'rmdir',
  'unlink',
  'shred',
  'dd',
  'truncate',
  'mkfs',
  'mv',
  'cp',
  'ln',
  'install',
  'chmod',
  'chown',
  'kill',
  'pkill',
  'killall',
  'find',
  'fd',
  'fdfind',
  'awk',
  'gawk',
  'mawk',
  'nawk',
  'sed',
  'tee',
  'parallel',
  'trap',
  'source',
  '.',
  'alias',
  'export',
  'declare',
  'typeset',
  'hash',
  'enable',
  'set',
  'shopt',
  'script',
  'at',
  'crontab',
  'systemd-run',
  'unshare',
  'nsenter',
  'setpriv',
  'runuser',
  'gdb',
  'vim',
  'vi',
  'ed',
  'ex',
  'emacs',
  'expect',
  'osascript',
  'tar',
  'bsdtar',
  'zip',
  'less',
  'more',
  'man',
  'view',
  'nano',
  'screen',
  'tmux',
  'entr',
  'split',
  'sort',
  'rg',
  'cmake',
  'sqlite3',
  'psql',
  'mysql',
  'lftp',
  'ftp',
  'openssl',
  'taskset',
  'chrt',
  'setarch',
  'linux32',
  'linux64',
  'prlimit',
  'ltrace',
  'valgrind',
  'perf',
  'start-stop-daemon',
  'firejail',
  'proot',
  'fakeroot',
  'unbuffer',
  'dbus-run-session',
  'xvfb-run',
  'pkexec',
  'batch',
  'direnv',
  'nix-shell',
])

/** The words that a rule remembers of a command. Undefined where only the very same command may be remembered. */
export function prefixOf(command: ShellCommand): readonly string[] | undefined {
  const program = programOf(command)
  const first = command.words[0]
  if (program === undefined || first === undefined || never.has(program)) return undefined
  if (!hasHarmlessSurroundings(command) || !hasPlainWords(command)) return undefined
  if (startsOther(command.words.slice(1), command.words)) return undefined
  // Whoever lets branches be deleted once has not let it for all that git branch does.
  if (lossesOf(command).length > 0) return undefined
  if (interpreters.has(program)) return withOperands(command, 1)
  return Object.hasOwn(tools, program) ? deedOf(command, program) : [first]
}

function deedOf(command: ShellCommand, program: string): readonly string[] | undefined {
  const short = withOperands(command, 1)
  const deed = short?.[1]
  if (short === undefined || deed === undefined || openEnded.has(`${program} ${deed}`)) return undefined
  if (tools[program]?.includes(deed) !== true) return short
  const long = withOperands(command, 2)
  return long === undefined || openEnded.has(`${program} ${deed} ${long[2]}`) ? undefined : long
}

/** The program and `count` words behind it that are no options. */
function withOperands({ words }: ShellCommand, count: number): readonly string[] | undefined {
  const found = words.slice(0, count + 1).filter(word => word !== undefined)
  if (found.length !== count + 1 || found.slice(1).some(word => word.startsWith('-'))) return undefined
  return found
}

/**
 * Whether a rule that allows `prefix` allows `command`: it begins with these words, and neither files, variables nor words
 * that only the shell knows make it more than that.
 */
export function coversCommand(prefix: readonly string[], command: ShellCommand): boolean {
  const { words } = command
  if (prefix.length === 0 || !prefix.every((word, index) => words[index] === word)) return false
  return (
    hasHarmlessSurroundings(command) &&
    hasPlainWords(command) &&
    !startsOther(words.slice(prefix.length), words)
  )
}

/** Options of git, also shortened, that name a program to run or bring configuration that does. */
const startingOptions = ['upload-pack', 'receive-pack', 'exec', 'extcmd', 'template', 'config']

/** Whether git is told to start something that the words of a rule do not name. */
function startsOther(
  added: readonly (string | undefined)[],
  [program, deed]: ShellCommand['words'],
): boolean {
  if (program !== 'git') return false
  return added.some(word => {
    if (word === undefined) return false
    if (deed === 'clone' && /^-[a-zA-Z]*[cu]/.test(word)) return true
    const name = /^--([a-z-]+)/.exec(word)?.[1]
    return name !== undefined && startingOptions.some(option => option.startsWith(name))
  })
}
