/** Folders whose files run or configure something as soon as somebody uses them. */
const folders = new Set(['.dsh', '.vscode', '.idea'])
const files = new Set(['.envrc'])
/** Below a `.git`, also of a submodule or work tree: what git runs, and what tells it to run something. */
const gitParts = new Set(['hooks', 'config', 'config.worktree'])

/** Whether a path below the workspace is one that file tools leave alone, in whatever case it is written. */
export function isProtected(relativePath: string): boolean {
  const parts = relativePath.toLowerCase().split(/[\\/]/)
  if (parts.some(part => folders.has(part)) || files.has(parts.at(-1) ?? '')) return true
  const git = parts.indexOf('.git')
  if (git === -1) return false
  // The name itself, as a file, sends git elsewhere.
  return git === parts.length - 1 || parts.slice(git + 1).some(part => gitParts.has(part))
}
