import type { ShellCommand } from './service.ts'

/** Where a sandbox finds its pipes and its bash. Below /dev, which every sandbox has as a folder of its own. */
export const insideFolder = '/dev/dsh'

/**
 * What a sandbox runs: it starts a command for each request that it reads and tells of it, line by line.
 *
 * Each command is a job, so that its signals are those of a first process; it leads a session of its own, and nothing
 * but its own three descriptors is open in it. A wrapper around each waits for it and tells how it ended.
 */
const script = `
set -m
exec 2>/dev/null
dsh_mark=$DSH_PROCESS
printf 'ready %s\\n' "$dsh_mark"
while IFS= read -r -d '' dsh_id && IFS= read -r -d '' dsh_count && IFS= read -r -d '' dsh_pipe &&
  IFS= read -r -d '' dsh_folder && IFS= read -r -d '' dsh_command; do
  {
    if cd -P -- "$dsh_folder" && exec 3>"${insideFolder}/$dsh_pipe.out" 4>"${insideFolder}/$dsh_pipe.err"; then
      unset OLDPWD SHLVL
      DSH_PROCESS=$dsh_mark.$dsh_count
      ( printf '%s begun %s\\n' "$dsh_id" "$BASHPID"
        exec "$0" "$1" -c "$dsh_command" >&3 2>&4 3>&- 4>&- )
      dsh_status=$?
      exec 3>&- 4>&-
      printf '%s ended %s\\n' "$dsh_id" "$dsh_status"
    else
      printf '%s refused 0\\n' "$dsh_id"
    fi
  } </dev/null &
  disown
done
`

export interface RunnerPrograms {
  readonly setsid: string
  /** The bash of the commands. */
  readonly shell: string
}

export function runnerArgv({ setsid, shell }: RunnerPrograms): [program: string, ...args: string[]] {
  // With a socket for its input bash takes itself for a remote one, and reads a file of the person first.
  return [`${insideFolder}/bash`, '--norc', '-c', script, setsid, shell]
}

export interface RunnerRequest extends Pick<ShellCommand, 'command' | 'cwd'> {
  readonly id: string
  /** Tells the processes of this command from those of others. */
  readonly count: number
  /** The name that its two pipes share. */
  readonly pipe: string
}

export function encodeRequest({ id, count, pipe, cwd, command }: RunnerRequest): string {
  return [id, count, pipe, cwd, command, ''].join('\0')
}

export type RunnerNews =
  /** It takes requests; what it starts carries `mark` and a count. */
  | { readonly kind: 'ready'; readonly mark: string }
  /** `value` is the number of the process within the sandbox, or the exit status. */
  | { readonly kind: 'begun' | 'refused' | 'ended'; readonly id: string; readonly value: number }

export function readNews(line: string): RunnerNews | undefined {
  const [, mark] = /^ready ([\w.-]+)$/.exec(line) ?? []
  if (mark !== undefined) return { kind: 'ready', mark }
  const [, id = '', kind, value] = /^([\da-f]+) (begun|refused|ended) (\d+)$/.exec(line) ?? []
  if (kind !== 'begun' && kind !== 'refused' && kind !== 'ended') return undefined
  return { kind, id, value: Number(value) }
}

/** The runner reads byte by byte, so what is long is not for it. */
const maxBytes = 8192

/** What means something to bash itself, which would act on it or change it on the way to a command. */
const ofBash =
  /^(BASH.*|SHELLOPTS|POSIXLY_CORRECT|ENV|IFS|SHLVL|PWD|OLDPWD|_|CDPATH|TMOUT|PS4|GLOBIGNORE|FUNCNEST|EXECIGNORE|E?UID|PPID|GROUPS|DIRSTACK|LINENO|S?RANDOM|SECONDS|EPOCH.*|OPT(ARG|ERR|IND)|PIPESTATUS|REPLY|MAPFILE|COPROC|COMP_.*|HISTCMD|LINES|COLUMNS|dsh_.*)$/
const name = /^[A-Za-z_]\w*$/

export function fitsRunner(command: string, cwd: string): boolean {
  return Buffer.byteLength(command) + Buffer.byteLength(cwd) <= maxBytes && cwd.startsWith('/')
}

export function fitsBash(env: Readonly<Record<string, string>>): boolean {
  return Object.keys(env).every(each => name.test(each) && !ofBash.test(each))
}
