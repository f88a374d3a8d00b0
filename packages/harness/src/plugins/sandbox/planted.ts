import { relative } from 'node:path'
import { canonical } from './canonical.ts'
import { nestedRepositories, runsPrograms } from './nested.ts'

/** For the model, and for the person who reads it in the result. */
export const plantedText = (paths: readonly string[]): string =>
  `[sandbox: the index now records ${paths.map(named).join(', ')} as a repository of its own, with configuration or hooks that may run programs; the user's next \`git status\` here would run them. Take it out of the index with \`git rm --cached\`, or tell the user to look at it first]`

/** Whoever made the name may have put anything into it. */
function named(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : JSON.stringify(path)
}

/** Repositories that the index of a workspace records since the first look at it, and that may run programs. */
export class PlantedRepositories {
  readonly #passed = new Map<string, Set<string>>()

  /** Each once, by its path in the workspace. What is there at the first look is the person's own. */
  look(workspace: string): readonly string[] {
    const root = canonical(workspace)
    const passed = this.#passed.get(root)
    if (passed === undefined) {
      this.#passed.set(root, new Set(nestedRepositories(root)))
      return []
    }
    const found = nestedRepositories(root).filter(folder => !passed.has(folder) && runsPrograms(folder))
    for (const folder of found) passed.add(folder)
    return found.map(folder => relative(root, folder))
  }
}
