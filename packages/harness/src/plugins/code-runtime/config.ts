import { _default, int, literal, lte, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { ToolPresentation } from '../../core/tools/index.ts'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { RunLimits } from './run.ts'
import type { CodeLanguage } from './service.ts'

export interface CodeRuntimeConfig extends RunLimits {
  readonly language: CodeLanguage
  /** How tools are offered: by themselves, through programs alone, or both. Of `native`, run_code is no part. */
  readonly presentation: ToolPresentation
  /** Calls of one program that may run at once. */
  readonly maxParallelSubCalls: number
}

export const codeRuntimeSchema = () => {
  const count = (fallback: number) => _default(int().check(positive()), fallback)
  return prefault(
    strictObject({
      language: _default(literal(['typescript', 'python']), 'typescript'),
      presentation: _default(literal(['native', 'code', 'both']), 'native'),
      cpuSeconds: count(60),
      maxWallMs: _default(int().check(positive(), lte(MAX_TIMER_DELAY_MS)), 600_000),
      maxOutputBytes: count(64 * 2 ** 20),
      memoryMb: count(512),
      maxParallelSubCalls: count(10),
    }),
    {},
  )
}

export type CodeRuntimeInput = input<ReturnType<typeof codeRuntimeSchema>>
