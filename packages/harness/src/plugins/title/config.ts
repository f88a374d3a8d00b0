import {
  _default,
  gte,
  int,
  literal,
  lte,
  minLength,
  optional,
  prefault,
  refine,
  strictObject,
  string,
} from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'

const count = (value: number) => _default(int().check(gte(1)), value)
const name = () => optional(string().check(minLength(1)))

const llmSchema = () =>
  strictObject({
    automatic: _default(literal(['first-prompt', 'all-prompts']), 'first-prompt'),
    targetWords: count(5),
    targetCjkCharacters: count(10),
    maxInputBytes: count(4096),
    maxOutputTokens: count(64),
    timeoutMs: _default(int().check(gte(1), lte(MAX_TIMER_DELAY_MS)), 60_000),
    provider: name(),
    model: name(),
  }).check(
    refine(({ provider, model }) => (provider === undefined) === (model === undefined), {
      error: 'give provider and model, or neither',
    }),
  )

export const titleSchema = () =>
  prefault(
    strictObject({
      fallbackMaxWords: count(5),
      fallbackMaxBytes: count(40),
      maxTitleBytes: count(80),
      /** Asks a model for titles; absent = no request is made for them. */
      llm: optional(llmSchema()),
    }).check(
      refine(({ fallbackMaxBytes, maxTitleBytes }) => fallbackMaxBytes <= maxTitleBytes, {
        path: ['fallbackMaxBytes'],
        error: 'it is more than maxTitleBytes',
      }),
    ),
    {},
  )

export type TitleInput = input<ReturnType<typeof titleSchema>>
export type CheckedTitleConfig = output<ReturnType<typeof titleSchema>>
