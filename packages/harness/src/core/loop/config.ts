import {
  _default,
  array,
  int,
  minLength,
  optional,
  positive,
  prefault,
  refine,
  strictObject,
  string,
} from 'zod/mini'
import type { ConfigSchema } from '../../kernel/index.ts'

/** An agent that is there as long as the loop is. */
export interface ConfiguredAgent {
  /** A label; its sessions are named after it. */
  readonly id: string
  /** Goes on with this session where it is stored, else begins it. */
  readonly sessionId?: string
  /** Goes on with this session, which must be stored. */
  readonly resumeSessionId?: string
  readonly provider?: string
  readonly model?: string
  readonly maxTokens?: number
  /** Absolute. */
  readonly cwd?: string
}

export interface AgentLoopConfig {
  readonly agents?: readonly ConfiguredAgent[]
  /** How many tool bodies of one agent may run at once; 1 = one after another. */
  readonly maxParallelToolCalls?: number
}

export type CheckedLoopConfig = Required<AgentLoopConfig>

export function configSchema(): ConfigSchema<AgentLoopConfig | undefined, CheckedLoopConfig> {
  const text = string().check(minLength(1))
  const count = int().check(positive())
  const agent = strictObject({
    id: text,
    sessionId: optional(text),
    resumeSessionId: optional(text),
    provider: optional(text),
    model: optional(text),
    maxTokens: optional(count),
    cwd: optional(text),
  }).check(
    refine(
      ({ sessionId, resumeSessionId }) => sessionId === undefined || resumeSessionId === undefined,
      'takes sessionId or resumeSessionId, not both',
    ),
  )
  const ids = (agents: readonly ConfiguredAgent[]): string[] =>
    agents.flatMap(({ sessionId = [], resumeSessionId = [] }) => [sessionId, resumeSessionId]).flat()
  const agents = array(agent).check(
    refine(
      list => new Set(ids(list as ConfiguredAgent[])).size === ids(list as ConfiguredAgent[]).length,
      'name one session twice',
    ),
  )
  return prefault(
    strictObject({
      agents: _default(agents, []),
      maxParallelToolCalls: _default(count, 10),
    }),
    {},
  ) as unknown as ReturnType<typeof configSchema>
}
