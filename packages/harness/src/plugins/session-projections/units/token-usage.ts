import type { TokenUsage } from '@dsh/protocol'
import { tokenUsage } from '../../../core/session/index.ts'
import type { UsageTally } from '../../../core/session/index.ts'
import { isCount, isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

declare module '../projection.ts' {
  interface ProjectionStates {
    tokenUsage: UsageTally
  }
}

export const tokenUsageUnit: ProjectionUnit<
  UsageTally,
  'step/start' | 'assistant/chunk' | 'assistant/message'
> = {
  key: 'tokenUsage',
  stateVersion: 1,
  fold: tokenUsage,
  isState: (value): value is UsageTally =>
    isFields(value) &&
    isUsage(value['total']) &&
    isUsage(value['step']) &&
    isCount(value['from']) &&
    typeof value['isTold'] === 'boolean',
  view: ({ total, step }) => ({ total: { ...total }, step: { ...step } }),
}

function isUsage(value: unknown): value is TokenUsage {
  return (
    isFields(value) &&
    isCount(value['inputTokens']) &&
    isCount(value['outputTokens']) &&
    Object.values(value).every(isCount)
  )
}
