import { _default, array, boolean, custom, literal, optional, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { isFields } from '../../kernel/index.ts'
import { sandboxModes } from './events.ts'
import type { SandboxMode } from './events.ts'
import type { SandboxBounds } from './service.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface SandboxConfig {
  /** Of sessions whose log says nothing else. */
  readonly mode: SandboxMode
  /** The workspace of sessions that have no folder. */
  readonly cwd?: string | undefined
  /** The program's own folder: logs and keys, which no confined process reads. */
  readonly home?: string | undefined
  /** Tells where sockets are that act for the person. */
  readonly env: Environment
}

export const sandboxSchema = () =>
  prefault(
    strictObject({
      mode: _default(literal(sandboxModes), 'workspace-write'),
      cwd: optional(string()),
      home: optional(string()),
      env: _default(custom<Environment>(isFields), {}),
    }),
    {},
  )

export type SandboxInput = input<ReturnType<typeof sandboxSchema>>

export const boundsSchema = () =>
  prefault(
    strictObject({
      network: _default(boolean(), false),
      writable: _default(array(string()), []),
      unreadable: _default(array(string()), []),
      protect: _default(array(string()), []),
    }),
    {},
  )

export type BoundsInput = input<ReturnType<typeof boundsSchema>>
export type BoundsConfig = Required<SandboxBounds>
