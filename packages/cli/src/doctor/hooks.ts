import { projectHooks } from '@dsh/harness/plugins/hooks'
import { LocalTrust, projectParts } from '@dsh/harness/plugins/trust'
import { counted } from '../text.ts'
import { note, ok } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** Hooks that the folder brings along; those of a person are told of when a run takes them up. */
export async function lookAtHooks({ cwd, home, command }: Place): Promise<Findings> {
  const { parts } = cwd === undefined ? { parts: [] } : projectParts(cwd, { home })
  const hooks = parts.filter(({ kind }) => kind === 'hooks')
  const found = cwd === undefined ? [] : await projectHooks(cwd)
  // Those of the program's own folder are no part of any project.
  const files = found.filter(({ path }) => hooks.some(part => part.path === path))
  if (cwd === undefined || files.length === 0) return [ok('this folder brings none')]
  const waiting = await new LocalTrust(home).pending(cwd, hooks)
  const left = files.flatMap(({ path, problems }) =>
    problems.map(problem => note('HOOK_NOT_LOADED', problem, `edit ${path}`)),
  )
  const count = files.reduce((sum, file) => sum + file.count, 0)
  const what = `${counted(count, 'hook')} in ${files.map(({ path }) => path).join(', ')}`
  if (waiting.length === 0) return [...left, ok(what)]
  const untrusted = `${what} do not run: the folder is not trusted as it is`
  return [...left, note('HOOKS_NOT_TRUSTED', untrusted, `${command} trust`)]
}
