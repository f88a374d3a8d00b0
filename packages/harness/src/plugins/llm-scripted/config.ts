import { z } from 'zod/mini'
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

type Schema = ConfigSchema<ScriptedConfig | undefined, CheckedConfig>

let schema: Schema | undefined

/** The one schema, made when it is first asked for. */
export function configSchema(): Schema {
  schema ??= createSchema() as unknown as Schema
  return schema
}

function createSchema() {
  const isAdapter = (value: unknown): boolean =>
    typeof (value as { stream?: unknown } | null)?.stream === 'function'
  const written = z
    .strictObject({
      provider: z._default(z.string().check(z.minLength(1)), 'scripted'),
      script: z.optional(z.array(entrySchema())),
      adapter: z.optional(z.custom<ScriptedAdapter>(isAdapter, 'has no stream method')),
    })
    .check(z.refine(({ script, adapter }) => !(script && adapter), 'takes a script or an adapter, not both'))
  return z.pipe(
    z.prefault(written, {}),
    z.transform(({ provider, script, adapter }): CheckedConfig => ({
      provider,
      adapter: adapter ?? new ScriptedAdapter(script),
    })),
  )
}

function entrySchema() {
  const isAnswer = (value: unknown): boolean => typeof value === 'function' || Array.isArray(value)
  const call = z.strictObject({ name: z.string(), args: z.json(), id: z.optional(z.string()) })
  const failure = z.strictObject({ fail: z.string(), facts: z.optional(z.record(z.string(), z.unknown())) })
  return z.union([
    z.literal('hang'),
    z.custom<ScriptEntry>(isAnswer),
    z.pipe(
      z.strictObject({ text: z.string() }),
      z.transform(written => text(written.text)),
    ),
    z.pipe(
      z.strictObject({ toolCalls: z.array(call) }),
      z.transform(written => toolCalls(written.toolCalls as readonly ScriptedCall[])),
    ),
    z.pipe(
      failure,
      z.transform(written => fail(written.fail, written.facts)),
    ),
  ])
}
