import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders, replaceFile } from '@dsh/harness/kernel'
import type { ModelRoute } from './model.ts'

const fileName = 'default-model.json'

/** The model that was asked for last. A file that is missing or says something else is as good as none. */
export async function readLastModel(home: string): Promise<ModelRoute | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(home, fileName), 'utf8'))
    const { provider, model } = value as Partial<ModelRoute>
    return typeof provider === 'string' && typeof model === 'string' ? { provider, model } : undefined
  } catch {
    return undefined
  }
}

/** Keeps the choice for later runs: whole or not at all. */
export async function writeLastModel(home: string, { provider, model }: ModelRoute): Promise<void> {
  makeFolders(home)
  await replaceFile(join(home, fileName), `${JSON.stringify({ provider, model })}\n`, { mode: 0o600 })
}
