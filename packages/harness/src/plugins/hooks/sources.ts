import { isAbsolute, join } from 'node:path'
import type { HooksConfig } from './config.ts'
import { dialects } from './dialect.ts'
import type { HookDialect } from './dialect.ts'
import { userHome } from './env.ts'
import { projectFiles } from './project-files.ts'

/** A file that may declare hooks. */
export interface HookSource {
  /** Absolute; undefined where the configuration names none that can be found. */
  readonly path: string | undefined
  /** What messages call it: as it was named, or relative to the project. */
  readonly label: string
  readonly dialect: HookDialect
  readonly env: Readonly<Record<string, string>>
  /** The project brings it, so it counts only once trusted. */
  readonly isOfProject: boolean
}

/** Those of the person first. `folder` is that of the session. */
export function sourcesOf({ files, project }: HooksConfig, folder: string | undefined): HookSource[] {
  const own = files.map(({ path: label, dialect, pluginRoot }): HookSource => {
    const path = label.replace(/^~(?=\/)/, userHome())
    return {
      path: isAbsolute(path) ? path : undefined,
      label,
      dialect: dialects[dialect],
      env: pluginRoot === undefined ? {} : { CLAUDE_PLUGIN_ROOT: pluginRoot },
      isOfProject: false,
    }
  })
  const paths = new Set(own.map(({ path }) => path))
  const brought = project && folder !== undefined ? projectSources(folder) : []
  return [...own, ...brought.filter(({ path }) => !paths.has(path))]
}

function projectSources(folder: string): HookSource[] {
  return projectFiles.map(([label, dialect]) => ({
    path: join(folder, label),
    label,
    dialect: dialects[dialect],
    env: {},
    isOfProject: true,
  }))
}
