import type { Machine } from './env.ts'

const inHome = [
  '.ssh .gnupg .aws .azure .kube .netrc .npmrc .pypirc .pgpass .my.cnf .vault-token .password-store',
  '.git-credentials .config/git/credentials .config/gh .config/hub .config/gcloud .config/op .config/rclone',
  '.docker/config.json .docker/run .docker/desktop .colima .cargo/credentials .cargo/credentials.toml .gem/credentials',
  '.terraform.d/credentials.tfrc.json .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json',
  '.local/share/keyrings .local/share/kwalletd .local/share/opencode/auth.json',
  '.mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge',
  'Library/Keychains Library/Cookies Library/Mail Library/Messages',
].flatMap(line => line.split(' '))

const inMacHome = ['Google/Chrome', 'Firefox', 'BraveSoftware', 'Microsoft Edge'].map(
  name => `Library/Application Support/${name}`,
)

/** What only root can read; to others the system refuses it. */
const ofRoot = ['/etc/shadow', '/etc/gshadow', '/etc/master.passwd']

/** Where keys and other secrets of a person lie, and the doors to programs that act for the person. */
export function secretPaths(
  { userHome, uid }: Pick<Machine, 'userHome' | 'uid'>,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  return [
    ...(userHome === undefined ? [] : [...inHome, ...inMacHome].map(name => `${userHome}/${name}`)),
    ...(uid === 0 ? ofRoot : []),
    '/var/run/docker.sock',
    ...['SSH_AUTH_SOCK', 'GPG_AGENT_INFO', 'DOCKER_HOST', 'DBUS_SESSION_BUS_ADDRESS'].flatMap(name =>
      socketIn(env[name] ?? ''),
    ),
  ]
}

/** The path in the forms that these variables have: plain, `unix://…` and `unix:path=…,…`. */
function socketIn(value: string): string[] {
  const path = /^(?:unix:(?:\/\/|path=))?(\/[^,:;]+)/.exec(value)?.[1]
  return path === undefined ? [] : [path]
}

/** Of the program's own home: what confined processes may read all the same. */
export const readableOfHome = ['skills', 'commands', 'agents'] as const
