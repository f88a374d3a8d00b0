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
