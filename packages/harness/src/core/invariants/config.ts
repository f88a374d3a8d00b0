import {
  _default,
  array,
  boolean,
  literal,
  minLength,
  prefault,
  refine,
  strictObject,
  string,
} from 'zod/mini'
import type { ConfigSchema } from '../../kernel/index.ts'

export interface InvariantsConfig {
  readonly enabled?: boolean
  /** 'refuse' keeps the event out of the log and throws at its writer; 'report' only tells `internal/error`. */
  readonly mode?: 'report' | 'refuse'
  /** Regular expressions on names of checks: where there are any, only matching checks run. */
  readonly allow?: readonly string[]
  /** Matching checks do not run, whatever `allow` says. */
  readonly block?: readonly string[]
}

export type CheckedConfig = Required<InvariantsConfig>

export function configSchema(): ConfigSchema<InvariantsConfig | undefined, CheckedConfig> {
  const pattern = string().check(minLength(1), refine(isPattern, 'is no regular expression'))
  const patterns = _default(array(pattern), [])
  return prefault(
    strictObject({
      enabled: _default(boolean(), true),
      mode: _default(literal(['report', 'refuse']), 'report'),
      allow: patterns,
      block: patterns,
    }),
    {},
  ) as unknown as ReturnType<typeof configSchema>
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp
  } catch {
    return false
  }
}
