import { _default, gte, int, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../tasks/index.ts'
import type {} from './service.ts'
import { terminalClose } from './tools/close.ts'
import { terminalList } from './tools/list.ts'
import { terminalOpen } from './tools/open.ts'
import { terminalRead } from './tools/read.ts'
import { terminalSend } from './tools/send.ts'
import { terminalSignal } from './tools/signal.ts'

export interface PtyToolsConfig {
  /** Shown of what a terminal printed; the rest goes to the session's artifacts. */
  readonly maxOutputBytes: number
}

export const ptyToolsFields = () => ({ maxOutputBytes: _default(int().check(gte(64)), 24_000) })

const schema = () => prefault(strictObject(ptyToolsFields()), {})

/** The tools terminal_*, over whatever provides `ctx.pty`; each is offered once it is asked for. */
export const ptyTools: PluginObject<input<ReturnType<typeof schema>>, PtyToolsConfig> = {
  name: 'pty-tools',
  inject: { required: ['pty', 'tools'], optional: ['tasks'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: PtyToolsConfig) {
    const { pty } = ctx
    const tools = [
      terminalClose(pty),
      terminalList(pty),
      terminalOpen(pty),
      terminalRead(pty, config),
      terminalSend(ctx, pty, config),
      terminalSignal(pty),
    ]
    for (const tool of tools) ctx.tools.register(tool)
  },
}
