/** What runs or configures something as soon as somebody uses the folder it lies in. */
export const protectedNames = ['.dsh', '.vscode', '.idea', '.envrc', '.claude', '.codex'] as const

/** Lies in a folder that only takes such a name: git passes over it, and who looks reads why it is there. */
export const signName = '.gitignore'
export const placeholderSign = '# Takes this name while dsh runs, and goes when it ends.\n*\n'

const names: ReadonlySet<string> = new Set(protectedNames)
/** Below a `.git`, also of a submodule or work tree: what git runs, and what tells it to run something. */
const gitParts = new Set(['hooks', 'config', 'config.worktree', 'commondir'])

/** Whether a path below the workspace is one that file tools leave alone, in whatever case it is written. */
export function isProtected(relativePath: string): boolean {
  const parts = relativePath.toLowerCase().split(/[\\/]/)
  if (parts.some(part => names.has(part))) return true
  const git = parts.indexOf('.git')
  if (git === -1) return false
  // The name itself, as a file, sends git elsewhere.
  return git === parts.length - 1 || parts.slice(git + 1).some(part => gitParts.has(part))
}
