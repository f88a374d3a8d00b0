import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { HooksConfig } from './config.ts'
import type { HookDialectName } from './events.ts'

/** What a project may bring, relative to its folder. */
export const projectFiles: readonly (readonly [label: string, dialect: HookDialectName])[] = [
  ['.claude/settings.json', 'claude'],
  ['.claude/settings.local.json', 'claude'],
  ['.codex/hooks.json', 'codex'],
  ['.dsh/hooks.json', 'claude'],
]

/** Whether there is any such file, looking at names alone; a file that a person named and is not there counts too. */
export function mayHaveHooks({ files, project }: HooksConfig, folder: string | undefined): boolean {
  if (files.length > 0) return true
  if (!project || folder === undefined) return false
  return projectFiles.some(([label]) => isThere(join(folder, label)))
}

function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}
