import { SessionId } from '@dsh/protocol'
import type { UserMessage } from '@dsh/protocol'
import { AgentRegistry } from '../core/agent/index.ts'
import type { Agent, AgentOptions } from '../core/agent/index.ts'
import { Commands } from '../core/commands/index.ts'
import { createUserMessage, LlmRuntime } from '../core/llm/index.ts'
import { AgentLoop } from '../core/loop/index.ts'
import type { AgentLoopConfig } from '../core/loop/index.ts'
import { SystemPrompt } from '../core/prompt/index.ts'
import { SessionStore } from '../core/session/index.ts'
import { ToolRuntime } from '../core/tools/index.ts'
import { Context } from '../kernel/index.ts'
import { ScriptedAdapter } from '../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../plugins/llm-scripted/index.ts'

/** The seven plugins of the core and a model that answers from a script. An assertion that a listener makes counts. */
export interface Harness {
  readonly ctx: Context
  /** Serves the provider `mock`; a request takes the next entry of its script. */
  readonly adapter: ScriptedAdapter
  /** A new agent that asks the scripted model, unless `options` says otherwise. */
  agent(id?: string, options?: AgentOptions): Agent
}

export async function createHarness(
  script: readonly ScriptEntry[] = [],
  loop: AgentLoopConfig = {},
): Promise<Harness> {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, loop)
  await ctx.plugin(Commands)
  ctx.on('internal/error', failAssertion)
  const adapter = new ScriptedAdapter(script)
  ctx.llm.registerAdapter(['mock'], adapter)
  let count = 0
  return {
    ctx,
    adapter,
    agent: (id = `agent-${++count}`, options = {}) =>
      ctx.agentLoop.create(SessionId(id), { provider: 'mock', model: 'mock', ...options }),
  }
}

/** What a listener throws is contained, a failed assertion too; as a rejection that nobody handles it fails the test. */
function failAssertion(error: unknown): void {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  if (code === 'ERR_ASSERTION') void Promise.reject(error as Error)
}

/** What a person says. */
export function say(text: string): UserMessage {
  return createUserMessage({ content: [{ type: 'text', text }], source: { kind: 'user' } })
}
