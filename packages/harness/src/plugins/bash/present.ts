import type { JsonValue } from '@dsh/protocol'
import type { ToolView } from '../../core/tools/index.ts'
import { isFields } from '../../kernel/index.ts'

/** Undefined for a meta that this version cannot read. */
export function presentBash(
  { command, description }: { readonly command: string; readonly description: string },
  meta: JsonValue | undefined,
): ToolView | undefined {
  if (!isFields(meta)) return undefined
  const { exitCode, signal, timedOut, durationMs } = meta
  const isExit = exitCode === null || Number.isInteger(exitCode)
  const isSignal = signal === null || typeof signal === 'string'
  if (!isExit || !isSignal || typeof timedOut !== 'boolean' || typeof durationMs !== 'number')
    return undefined
  const task = isFields(meta['task']) ? meta['task']['id'] : undefined
  const denied = isFields(meta['sandbox']) && meta['sandbox']['denied'] === true
  const data = {
    command,
    exitCode: exitCode ?? null,
    signal: signal ?? null,
    timedOut,
    durationMs,
    ...(typeof task === 'string' && { task }),
    ...(denied && { denied }),
  }
  return { card: 'terminal', title: description, data }
}
