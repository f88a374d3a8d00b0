import { AgentRegistry } from '../core/agent/index.ts'
import { LlmRuntime } from '../core/llm/index.ts'
import { AgentLoop } from '../core/loop/index.ts'
import { SystemPrompt } from '../core/prompt/index.ts'
import { SessionStore } from '../core/session/index.ts'
import { ToolRuntime } from '../core/tools/index.ts'
import { Context } from '../kernel/index.ts'
import { localFs } from '../plugins/fs/index.ts'
import { llmDemo } from '../plugins/llm-demo/index.ts'

export interface HeadlessOptions {
  /** Where sessions are kept. */
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly permission: 'read-only' | 'workspace-write' | 'full-access'
}

/** Everything one task needs, without a surface. */
export async function headless(_options: HeadlessOptions): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, {})
  await ctx.plugin(localFs)
  await ctx.plugin(llmDemo)
  return ctx
}
