/** Sessions as files: `<root>/<project>/<id>/log.jsonl.zst`, one writer each. `zstdcat log.jsonl.zst | jq` shows one. */
import { resolve } from 'node:path'
import { _default, gte, int, lte, minLength, strictObject, string } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { ConfigSchema, Context, PluginObject } from '../../kernel/index.ts'
import { createLocalProcesses, mountPersistence } from '../persistence/index.ts'
import { localFileSystem, watchFolder } from './local.ts'
import { JsonlMedium } from './medium.ts'

export type { FileStat, FileSystem, OpenFile } from './files/file-system.ts'

export interface StoreJsonlConfig {
  /** The folder of all sessions; made when the first is stored. */
  readonly root: string
  /** How long the first event of a batch waits for others, in ms. Default 200. */
  readonly writeBatchMaxDelayMs?: number
  /** How many sessions that were prepared and given back untouched are kept for the next who asks. Default 5. */
  readonly preparedSessionCacheSize?: number
}

type CheckedConfig = Required<StoreJsonlConfig>

function configSchema(): ConfigSchema<StoreJsonlConfig, CheckedConfig> {
  const delay = int().check(gte(1), lte(MAX_TIMER_DELAY_MS))
  return strictObject({
    root: string().check(minLength(1)),
    writeBatchMaxDelayMs: _default(delay, 200),
    preparedSessionCacheSize: _default(int().check(gte(1)), 5),
  }) as unknown as ConfigSchema<StoreJsonlConfig, CheckedConfig>
}

/** Keeps all sessions in files below `root`. */
export const storeJsonl: PluginObject<StoreJsonlConfig, CheckedConfig> = {
  name: 'store-jsonl',
  inject: ['sessions'],
  get Config() {
    return configSchema()
  },
  apply(ctx: Context, { root, ...options }) {
    const host = {
      fs: localFileSystem,
      processes: createLocalProcesses(),
      now: () => Date.now(),
      watch: watchFolder,
    }
    mountPersistence(ctx, new JsonlMedium(resolve(root), host), options)
  },
}
