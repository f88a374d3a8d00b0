import { minLength, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { LocalTrust } from './local.ts'

export { LocalTrust } from './local.ts'
export { hasProjectParts, projectParts } from './project-parts.ts'
export type { PartKind, ProjectPart, ProjectParts } from './project-parts.ts'
export * from './service.ts'

export interface TrustConfig {
  /** Holds `trust.json`. */
  readonly home: string
}

const schema = () => strictObject({ home: string().check(minLength(1)) })

/** Remembers which folders a person trusts to bring things that run: `ctx.trust`. Nothing is read before it is asked. */
export const trust: PluginObject<input<ReturnType<typeof schema>>, TrustConfig> = {
  name: 'trust',
  get Config() {
    return schema()
  },
  apply(ctx: Context, { home }: TrustConfig) {
    ctx.provide('trust', new LocalTrust(home))
  },
}
