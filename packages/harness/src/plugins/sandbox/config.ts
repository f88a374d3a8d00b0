import { _default, literal, optional, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { sandboxModes } from './events.ts'
import type { SandboxMode } from './events.ts'

export interface SandboxConfig {
  /** Of sessions whose log says nothing else. */
  readonly mode: SandboxMode
  /** The workspace of sessions that have no folder. */
  readonly cwd?: string | undefined
}

export const sandboxSchema = () =>
  prefault(
    strictObject({ mode: _default(literal(sandboxModes), 'workspace-write'), cwd: optional(string()) }),
    {},
  )

export type SandboxInput = input<ReturnType<typeof sandboxSchema>>
