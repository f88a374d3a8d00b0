import { textOf } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import type { HookDialect } from './dialect.ts'
import type { HookPoint } from './events.ts'
import type { ForeignCall } from './tool-names.ts'

/** What happens, before it is told in the terms of a dialect. */
export type Occasion =
  | { readonly point: 'SessionStart'; readonly source: string }
  | { readonly point: 'UserPromptSubmit'; readonly prompt: string }
  | { readonly point: 'PreToolUse'; readonly call: ForeignCall; readonly callId: string }
  | {
      readonly point: 'PostToolUse'
      readonly call: ForeignCall
      readonly callId: string
      /** Its text. */
      readonly response: string
    }
  | { readonly point: 'Stop'; readonly isActive: boolean }
  | { readonly point: 'Notification'; readonly message: string; readonly type: string }
  | { readonly point: 'SessionEnd'; readonly reason: string }

export interface PayloadFacts {
  readonly agent: Agent
  readonly folder: string
  readonly mode: SandboxMode
  /** Undefined outside of a turn. */
  readonly turn: number | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** What a matcher is held against; a point without any is for every hook of it. */
export function namesOf(occasion: Occasion): readonly string[] {
  switch (occasion.point) {
    case 'SessionStart':
      return [occasion.source]
    case 'PreToolUse':
    case 'PostToolUse':
      return occasion.call.names
    case 'Notification':
      return [occasion.type]
    case 'SessionEnd':
      return [occasion.reason]
    default:
      return []
  }
}

/** Whether matchers say anything at `point`. */
export function hasNames(point: HookPoint): boolean {
  return point !== 'UserPromptSubmit' && point !== 'Stop'
}

/** The text that a hook reads on standard input. */
export function payloadText(occasion: Occasion, facts: PayloadFacts, dialect: HookDialect): string {
  const fields = { ...commonFields(facts, dialect), hook_event_name: occasion.point }
  const text = JSON.stringify({ ...fields, ...ownFields(occasion, facts, dialect) })
  return dialect.endsLine ? `${text}\n` : text
}

function commonFields({ agent, folder, mode, turn }: PayloadFacts, { payloadFields }: HookDialect): Fields {
  const common = {
    session_id: agent.session.id,
    // The log is in another form than theirs, and out of a confined process's reach.
    transcript_path: null,
    cwd: folder,
  }
  if (payloadFields === 'claude')
    return { ...common, permission_mode: mode === 'full-access' ? 'bypassPermissions' : 'default' }
  const model = agent.session.requestHeader()?.config.model ?? agent.options.model ?? ''
  return {
    ...common,
    permission_mode: 'default',
    model,
    ...(turn !== undefined && { turn_id: String(turn) }),
  }
}

function ownFields(occasion: Occasion, { agent }: PayloadFacts, dialect: HookDialect): Fields {
  switch (occasion.point) {
    case 'PreToolUse':
      return callFields(occasion, dialect)
    case 'PostToolUse':
      return { ...callFields(occasion, dialect), tool_response: occasion.response }
    case 'Stop':
      return { stop_hook_active: occasion.isActive, last_assistant_message: lastAnswer(agent) }
    case 'Notification':
      return { message: occasion.message, notification_type: occasion.type }
    case 'UserPromptSubmit':
      return { prompt: occasion.prompt }
    case 'SessionStart':
      return { source: occasion.source }
    case 'SessionEnd':
      return { reason: occasion.reason }
  }
}

function callFields(
  { call, callId }: { readonly call: ForeignCall; readonly callId: string },
  dialect: HookDialect,
): Fields {
  return { tool_name: call.name, tool_input: inputFor(call, dialect), tool_use_id: callId }
}

/** Codex tells of commands alone. */
export function inputFor({ name, input }: ForeignCall, { payloadFields }: HookDialect): Fields {
  if (payloadFields === 'claude') return input
  return name === 'Bash' ? { command: input['command'] } : {}
}

function lastAnswer({ session }: Agent): JsonValue {
  const last = session.last('assistant/message')?.data
  return last === undefined ? null : textOf(last.message.content)
}
