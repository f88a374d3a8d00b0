import { nearest } from '../../kernel/index.ts'
import type { ConfigSchema } from '../../kernel/index.ts'
import { checkToolOrder } from './tool-order.ts'

export interface SystemPromptConfig {
  /** false leaves out the line that says who the model is. */
  readonly identity?: boolean
  /** Who the model is to be here; a scope may put its own in place. */
  readonly persona?: string
  /** Names of tools, and `<unlisted-tools>` where all others go. */
  readonly toolOrder?: readonly string[]
}

const checks: Record<keyof SystemPromptConfig, (value: unknown) => string | undefined> = {
  identity: value => (typeof value === 'boolean' ? undefined : 'is not true or false'),
  persona: value => (typeof value === 'string' ? undefined : 'is no text'),
  toolOrder: value => {
    if (!Array.isArray(value) || !value.every(name => typeof name === 'string')) return 'is no list of names'
    try {
      checkToolOrder(value)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  },
}

export const promptConfig: ConfigSchema<SystemPromptConfig | undefined, SystemPromptConfig> = {
  '~standard': {
    validate: value => {
      const config: unknown = value ?? {}
      if (typeof config !== 'object') return { issues: [{ message: 'is no map of settings' }] }
      const issues = Object.entries(config as object).flatMap(([key, setting]) => {
        const problem = problemOf(key, setting)
        return problem === undefined ? [] : [{ message: problem, path: [key] }]
      })
      return issues.length > 0 ? { issues } : { value: config as SystemPromptConfig }
    },
  },
}

function problemOf(key: string, setting: unknown): string | undefined {
  if (!Object.hasOwn(checks, key)) return `is no setting${nearest(key, Object.keys(checks))}`
  return setting === undefined ? undefined : checks[key as keyof SystemPromptConfig](setting)
}
