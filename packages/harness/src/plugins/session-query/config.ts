import {
  _default,
  boolean,
  gte,
  int,
  minLength,
  optional,
  positive,
  prefault,
  strictObject,
  string,
} from 'zod/mini'
import type { input } from 'zod/mini'

export interface SessionQueryConfig {
  /** The file of the index; without one, nothing is searched and lists are read from the logs. */
  readonly path?: string | undefined
  /** Gives the model the tools session_search and session_event_search, _trace and _read. */
  readonly tools: boolean
  readonly defaultLimit: number
  readonly maxLimit: number
  /** Characters of a hit's surroundings. */
  readonly snippetChars: number
  /** Events before and after one that `readEvent` gives at most. */
  readonly readWindowMax: number
  /** How many logs are inspected at once. */
  readonly persistedInspectConcurrency: number
  /** The index is kept within this size; the oldest sessions are found no more then. */
  readonly maxIndexBytes: number
  /** How long a question waits for another program that writes the index. */
  readonly patienceMs: number
  /** Of the search tools. */
  readonly maxSearchResults: number
  readonly searchTimeoutMs: number
}

const count = (fallback: number) => _default(int().check(positive()), fallback)

export const sessionQuerySchema = () =>
  prefault(
    strictObject({
      path: optional(string().check(minLength(1))),
      tools: _default(boolean(), false),
      defaultLimit: count(20),
      maxLimit: count(100),
      snippetChars: count(240),
      readWindowMax: count(50),
      persistedInspectConcurrency: count(4),
      maxIndexBytes: count(512 * 2 ** 20),
      patienceMs: _default(int().check(gte(0)), 2000),
      maxSearchResults: count(100),
      searchTimeoutMs: count(30_000),
    }),
    {},
  )

export type SessionQueryInput = input<ReturnType<typeof sessionQuerySchema>>
