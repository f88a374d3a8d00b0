import type { CheckedConfig } from './config.ts'
import type { GitSurroundings } from './git.ts'

/** Where git is found, and how long one run of it may take. */
export function surroundings({ env, maxMs }: CheckedConfig): GitSurroundings {
  const { PATH = '' } = env ?? process.env
  return { path: PATH, timeLimitMs: maxMs }
}
