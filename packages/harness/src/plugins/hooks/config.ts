import {
  _default,
  array,
  boolean,
  int,
  literal,
  lte,
  minLength,
  nonnegative,
  optional,
  positive,
  prefault,
  strictObject,
  string,
} from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import { hookDialects } from './events.ts'

export const hooksSchema = () =>
  prefault(
    strictObject({
      /** The program's own folder, which no project brings along. */
      home: optional(string().check(minLength(1))),
      /** Hook files of the person, besides those of a trusted project; absolute, or from `~/`. */
      files: _default(
        array(
          strictObject({
            path: string().check(minLength(1)),
            dialect: literal(hookDialects),
            /** What its commands find as CLAUDE_PLUGIN_ROOT. */
            pluginRoot: optional(string()),
          }),
        ),
        [],
      ),
      /** Whether what a trusted project brings counts. */
      project: _default(boolean(), true),
      /** Of hooks that name none. */
      timeoutMs: _default(int().check(positive(), lte(MAX_TIMER_DELAY_MS)), 60_000),
      /** What a hook that fails before a prompt or a call counts as. */
      onFailure: _default(literal(['deny', 'allow']), 'deny'),
      /** Lets hooks run without a sandbox where none works. */
      unconfined: _default(boolean(), false),
      /** How often hooks may keep one turn from ending. */
      maxStopRounds: _default(int().check(nonnegative()), 5),
    }),
    {},
  )

export type HooksInput = input<ReturnType<typeof hooksSchema>>
export type HooksConfig = output<ReturnType<typeof hooksSchema>>
