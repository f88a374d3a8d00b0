import { join } from 'node:path'
import { AgentRegistry } from '../core/agent/index.ts'
import { LlmRuntime } from '../core/llm/index.ts'
import { AgentLoop } from '../core/loop/index.ts'
import { SystemPrompt } from '../core/prompt/index.ts'
import { SessionStore } from '../core/session/index.ts'
import type { SessionPersistence } from '../core/session/index.ts'
import { ToolRuntime } from '../core/tools/index.ts'
import { Context } from '../kernel/index.ts'
import { approval } from '../plugins/approval/index.ts'
import type { PermissionMode } from '../plugins/approval/index.ts'
import { bash } from '../plugins/bash/index.ts'
import { fs } from '../plugins/fs/index.ts'
import { llmDemo } from '../plugins/llm-demo/index.ts'
import { llmOpenAIChat } from '../plugins/llm-openai-chat/index.ts'
import { retry } from '../plugins/retry/index.ts'
import { storeJsonl } from '../plugins/store-jsonl/index.ts'
import { subprocess } from '../plugins/subprocess/index.ts'

export interface HeadlessOptions {
  /** Where sessions are kept. */
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Of sessions whose log says nothing else. */
  readonly permission: PermissionMode
  /** Allows what would be asked. */
  readonly yes?: boolean
}

/** Everything one task needs, without a surface. */
export async function headless(options: HeadlessOptions): Promise<Context> {
  const { home, env, permission, yes = false } = options
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, {})
  await ctx.plugin(retry)
  await ctx.plugin(storeJsonl, { root: sessionsIn(home) })
  await ctx.plugin(fs)
  await ctx.plugin(approval, { mode: permission, yes })
  await ctx.plugin(subprocess, { env })
  await ctx.plugin(bash)
  await ctx.plugin(llmDemo)
  await ctx.plugin(llmOpenAIChat, { env })
  return ctx
}

/** Stored sessions to look at; nothing here writes. */
export interface SessionReader {
  readonly sessions: SessionPersistence
  close(): Promise<void>
}

/** Besides the store it has the plugins whose events a log may hold: what none declares cannot be understood. */
export async function sessionReader({ home }: Pick<HeadlessOptions, 'home'>): Promise<SessionReader> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(retry)
  await ctx.plugin(approval)
  await ctx.plugin(storeJsonl, { root: sessionsIn(home) })
  return { sessions: ctx.sessionPersistence, close: () => ctx.dispose() }
}

function sessionsIn(home: string): string {
  return join(home, 'sessions')
}
