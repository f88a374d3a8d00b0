import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { dialects } from './dialect.ts'
import { parseHookFile } from './hook-file.ts'
import { projectFiles } from './project-files.ts'
import { unusableText } from './text.ts'

export interface ProjectHooks {
  /** Relative to the project. */
  readonly path: string
  /** How many can run. */
  readonly count: number
  /** What cannot run, and why. */
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
      const unusable = handlers.flatMap(({ id, unusable: why }) =>
        why === undefined ? [] : [unusableText(id, why)],
      )
      const count = handlers.length - unusable.length
      return [{ path: label, count, problems: [...problems, ...unusable] }]
    }),
  )
  return found.flat()
}
