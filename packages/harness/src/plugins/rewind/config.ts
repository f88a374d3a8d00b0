import { _default, custom, gte, int, lte, minLength, optional, strictObject, string } from 'zod/mini'
import { isFields, MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { ConfigSchema } from '../../kernel/index.ts'

export interface RewindConfig {
  /** Holds the private repositories in its folder `restore`; is itself never part of a restore point. */
  readonly home: string
  /** The program `git` is looked for in its PATH. Default: that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Larger files are left out. Default 10 MiB. */
  readonly maxFileBytes?: number
  /** A workspace with more files has no restore points. Default 50,000. */
  readonly maxFiles?: number
  /** A workspace with more bytes in its files has none. Default 1 GiB. */
  readonly maxBytes?: number
  /** Before a command that destroys, ignored files up to this size are kept too. Default 1 MiB. */
  readonly ignoredMaxFileBytes?: number
  /** Of all of them together; a folder of which more would be kept is left out. Default 50 MiB. */
  readonly ignoredMaxBytes?: number
  /** Default 5,000. */
  readonly ignoredMaxFiles?: number
  /** Milliseconds that one point may take; longer, and there are no more of them. Default 15,000. */
  readonly maxMs?: number
  /** Days after which the points of a session that took no more may be removed. Default 30. */
  readonly keepDays?: number
}

export type CheckedConfig = Required<Omit<RewindConfig, 'env'>> & Pick<RewindConfig, 'env'>

export function rewindSchema(): ConfigSchema<RewindConfig, CheckedConfig> {
  const count = (value: number) => _default(int().check(gte(1)), value)
  return strictObject({
    home: string().check(minLength(1)),
    // `process.env` is no plain object.
    env: optional(custom<NonNullable<RewindConfig['env']>>(isFields)),
    maxFileBytes: count(10 * 1024 * 1024),
    maxFiles: count(50_000),
    maxBytes: count(1024 * 1024 * 1024),
    ignoredMaxFileBytes: count(1024 * 1024),
    ignoredMaxBytes: count(50 * 1024 * 1024),
    ignoredMaxFiles: count(5000),
    maxMs: _default(int().check(gte(1), lte(MAX_TIMER_DELAY_MS)), 15_000),
    keepDays: count(30),
  }) as unknown as ConfigSchema<RewindConfig, CheckedConfig>
}
