import {
  _default,
  array,
  custom,
  json,
  literal,
  minLength,
  optional,
  pipe,
  prefault,
  record,
  refine,
  strictObject,
  string,
  transform,
  union,
  unknown,
} from 'zod/mini'
import type { LlmFailure } from '@dsh/protocol'
import type { ConfigSchema } from '../../kernel/index.ts'
import { ScriptedAdapter } from './adapter.ts'
import { fail, text, toolCalls } from './script.ts'
import type { ScriptedCall, ScriptEntry } from './script.ts'

/** An entry as code gives it, or as a composition file can hold it. */
export type WrittenEntry =
  | ScriptEntry
  | { readonly text: string }
  | { readonly toolCalls: readonly ScriptedCall[] }
  | { readonly fail: string; readonly facts?: Partial<Omit<LlmFailure, 'code'>> }

export interface ScriptedConfig {
  /** The provider to serve; `scripted` where it is left out. */
  readonly provider?: string
  readonly script?: readonly WrittenEntry[]
  /** Serves this one instead of a new one, so that its requests can be looked at. */
  readonly adapter?: ScriptedAdapter
}

export interface CheckedConfig {
  readonly provider: string
  readonly adapter: ScriptedAdapter
}

export function configSchema(): ConfigSchema<ScriptedConfig | undefined, CheckedConfig> {
  const isAdapter = (value: unknown): boolean =>
    typeof (value as { stream?: unknown } | null)?.stream === 'function'
  const written = strictObject({
    provider: _default(string().check(minLength(1)), 'scripted'),
    script: optional(array(entrySchema())),
    adapter: optional(custom<ScriptedAdapter>(isAdapter, 'has no stream method')),
  }).check(refine(({ script, adapter }) => !(script && adapter), 'takes a script or an adapter, not both'))
  return pipe(
    prefault(written, {}),
    transform(({ provider, script, adapter }): CheckedConfig => ({
      provider,
      adapter: adapter ?? new ScriptedAdapter(script),
    })),
  ) as unknown as ReturnType<typeof configSchema>
}

function entrySchema() {
  const isAnswer = (value: unknown): boolean => typeof value === 'function' || Array.isArray(value)
  const call = strictObject({ name: string(), args: json(), id: optional(string()) })
  const failure = strictObject({ fail: string(), facts: optional(record(string(), unknown())) })
  return union([
    literal('hang'),
    custom<ScriptEntry>(isAnswer),
    pipe(
      strictObject({ text: string() }),
      transform(written => text(written.text)),
    ),
    pipe(
      strictObject({ toolCalls: array(call) }),
      transform(written => toolCalls(written.toolCalls as readonly ScriptedCall[])),
    ),
    pipe(
      failure,
      transform(written => fail(written.fail, written.facts)),
    ),
  ])
}
