import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { dialects } from './dialect.ts'
import { parseHookFile } from './hook-file.ts'
import { projectFiles } from './project-files.ts'

export interface ProjectHooks {
  /** Relative to the project. */
  readonly path: string
  /** How many can run. */
  readonly count: number
  /** What is left out, and why. */
  readonly problems: readonly string[]
}

/** Looks into each hook file of a project; links, and what cannot be read, are as none. */
export async function readProjectHooks(folder: string): Promise<readonly ProjectHooks[]> {
  const found = await Promise.all(
    projectFiles.map(async ([label, dialect]): Promise<readonly ProjectHooks[]> => {
      const path = join(folder, label)
      const isFile = await lstat(path).then(
        stats => stats.isFile(),
        () => false,
      )
      const text = isFile ? await readFile(path, 'utf8').catch(() => undefined) : undefined
      if (text === undefined) return []
      const { handlers, problems } = parseHookFile(text, { label, dialect: dialects[dialect] })
      return [{ path: label, count: handlers.length, problems }]
    }),
  )
  return found.flat()
}
