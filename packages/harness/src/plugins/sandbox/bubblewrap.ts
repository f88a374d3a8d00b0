import { isWithin } from '../../kernel/index.ts'

/** What stands at one place of the world that a confined process sees. */
export interface Mount {
  /** Absolute, links resolved. */
  readonly path: string
  /**
   * `write` and `keep` show what is there, with and without the right to change it; `empty` is a new folder; `hide` and
   * `hide-file` refuse every look.
   */
  readonly kind: 'write' | 'keep' | 'empty' | 'hide' | 'hide-file'
  /** Where what is shown lies; default: the same path. */
  readonly from?: string
}

export interface World {
  readonly mounts: readonly Mount[]
  readonly network: boolean
  readonly variables: Readonly<Record<string, string>>
  readonly terminal: boolean
}

/** What this machine's bubblewrap can do, and has to. */
export interface Bubblewrap {
  readonly program: string
  /** False where only root itself may make namespaces. */
  readonly userNamespace: boolean
  /** Keeps processes from making user namespaces of their own, and all that only roots of one may do. */
  readonly lastUserNamespace: boolean
  /** Parts of /proc that may be written by owning them: for root without any capability, the machine's own settings. */
  readonly kernelSettings: readonly string[]
}

const always = words(
  '--unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --die-with-parent --cap-drop ALL',
)
const devices = words('--dev /dev --proc /proc')

/**
 * The argv by which bubblewrap runs `argv` in `world`: everything can be read and nothing written, but for the mounts.
 *
 * Of two mounts the one further down counts, whatever order they come in; of two at one path the last.
 */
export function bubblewrapArgv(
  { program, userNamespace, lastUserNamespace, kernelSettings }: Bubblewrap,
  { mounts, network, variables, terminal }: World,
  argv: readonly [program: string, ...args: string[]],
): [program: string, ...args: string[]] {
  const ordered = inOrder(mounts)
  const root = ordered.find(({ path }) => path === '/')
  return [
    program,
    ...(userNamespace ? ['--unshare-user'] : []),
    ...(lastUserNamespace ? ['--disable-userns'] : []),
    ...always,
    ...(network ? [] : ['--unshare-net']),
    ...(terminal ? [] : ['--new-session']),
    root?.kind === 'write' ? '--bind' : '--ro-bind',
    '/',
    '/',
    ...devices,
    ...kernelSettings.flatMap(path => ['--ro-bind', path, path]),
    ...ordered.filter(({ path }) => path !== '/').flatMap(mount => mountArgs(mount, ordered)),
    ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
    '--',
    ...argv,
  ]
}

function inOrder(mounts: readonly Mount[]): Mount[] {
  const byPath = new Map(mounts.map(mount => [mount.path, mount]))
  return [...byPath.values()].toSorted((a, b) => depthOf(a.path) - depthOf(b.path))
}

function depthOf(path: string): number {
  return path === '/' ? 0 : path.split('/').length
}

function mountArgs({ path, kind, from = path }: Mount, all: readonly Mount[]): string[] {
  switch (kind) {
    case 'write':
      return ['--bind', from, path]
    case 'keep':
      return ['--ro-bind', from, path]
    case 'empty':
      return ['--tmpfs', path]
    case 'hide': {
      // What lies further down has to be reached.
      const isPassed = all.some(other => other.path !== path && isWithin(path, other.path))
      return ['--perms', isPassed ? '0111' : '0000', '--tmpfs', path]
    }
    case 'hide-file':
      return ['--ro-bind', '/dev/null', path]
  }
}

function words(text: string): string[] {
  return text.split(' ')
}
