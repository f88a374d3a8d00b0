import type { ContentBlock, JsonValue, SessionEvent, ToolErrorInfo } from '@dsh/protocol'

/** How a call ended, as its tool said it. */
export interface ToolResult {
  readonly content: readonly ContentBlock[]
  readonly isError: boolean
  readonly error?: ToolErrorInfo
  readonly meta?: JsonValue
}

export function resultOf({ message, error, meta }: SessionEvent<'tool/result'>['data']): ToolResult {
  const [{ content, isError = false }] = message.content
  return {
    content,
    isError,
    ...(error === undefined ? {} : { error }),
    ...(meta === undefined ? {} : { meta }),
  }
}
