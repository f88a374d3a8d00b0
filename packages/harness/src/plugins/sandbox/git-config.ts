/** What a configuration of git says about code that it runs, values as they stand there. */
export interface GitConfig {
  readonly hooksPath: string | undefined
  readonly includes: readonly string[]
  /** It reads a further file for each work tree. */
  readonly hasWorktreeFile: boolean
}

export function readGitConfig(text: string): GitConfig {
  let section = ''
  let hooksPath: string | undefined
  const includes: string[] = []
  let hasWorktreeFile = false
  for (const line of text.split('\n')) {
    section = /^\s*\[\s*([\w.-]+)/.exec(line)?.[1]?.toLowerCase() ?? section
    const [, key = '', raw = ''] = /^\s*(?:\[[^\]]*\]\s*)?([A-Za-z][\w-]*)\s*=\s*(.*)$/.exec(line) ?? []
    const value = raw
      .replace(/\s*[#;].*$/, '')
      .replaceAll('"', '')
      .trim()
    const name = `${section}.${key.toLowerCase()}`
    if (name === 'core.hookspath') hooksPath = value
    if (name === 'include.path' || name === 'includeif.path') includes.push(value)
    if (name === 'extensions.worktreeconfig') hasWorktreeFile = !/^(false|no|off|0)$/i.test(value)
  }
  return { hooksPath, includes, hasWorktreeFile }
}

/** What git writes itself into new repositories, and what names people and other repositories. */
const harmless = new Set([
  ...'repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol'
    .split(' ')
    .map(key => `core.${key}`),
  ...['name', 'email', 'signingkey'].map(key => `user.${key}`),
  ...['fetch', 'pushurl', 'tagopt', 'prune'].map(key => `remote.${key}`),
  ...['remote', 'merge', 'rebase', 'description'].map(key => `branch.${key}`),
  ...['objectformat', 'refstorage'].map(key => `extensions.${key}`),
  'init.defaultbranch',
  'pull.rebase',
  'pull.ff',
])

/** Whether a configuration has anything in it of which it is not known that git runs nothing because of it. */
export function mayRunPrograms(text: string): boolean {
  let section = ''
  return text.split('\n').some(line => {
    const rest = line.trim()
    if (rest === '' || /^[#;]/.test(rest)) return false
    const header = /^\[([\w.-]+)(?:\s+"[^"\\\]]*")?\]$/.exec(rest)
    if (header !== null) {
      section = header[1]?.toLowerCase() ?? ''
      return false
    }
    const [, key = '', value = ''] = /^([A-Za-z][\w-]*)\s*=\s*([^\\]*)$/.exec(rest) ?? []
    const name = `${section}.${key.toLowerCase()}`
    // Other forms of addresses run helpers, or are commands themselves.
    if (name === 'remote.url' || name === 'submodule.url') return /::|^-/.test(value)
    return key === '' || !harmless.has(name)
  })
}
