import { join } from 'node:path'
import { AgentRegistry, betweenTurns } from '../core/agent/index.ts'
import { LlmRuntime } from '../core/llm/index.ts'
import { AgentLoop } from '../core/loop/index.ts'
import { SystemPrompt } from '../core/prompt/index.ts'
import { SessionStore } from '../core/session/index.ts'
import type { SessionPersistence } from '../core/session/index.ts'
import { ToolRuntime } from '../core/tools/index.ts'
import { Context } from '../kernel/index.ts'
import type { Inject, PluginObject, SetupResult } from '../kernel/index.ts'
import { approval } from '../plugins/approval/index.ts'
import type { PermissionMode } from '../plugins/approval/index.ts'
import { bash } from '../plugins/bash/index.ts'
import { fs } from '../plugins/fs/index.ts'
import { llmDemo } from '../plugins/llm-demo/index.ts'
import { llmOpenAIChat } from '../plugins/llm-openai-chat/index.ts'
import { recovery } from '../plugins/recovery/index.ts'
import { retry } from '../plugins/retry/index.ts'
import { rewind } from '../plugins/rewind/index.ts'
import { sessionProjections } from '../plugins/session-projections/index.ts'
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
  /** Composition files that add, change and switch off plugins, the weakest first. */
  readonly files?: readonly string[]
}

/** A plugin of the preset, by the name that `dsh.yml` knows it under, and what the program itself settles of its config. */
interface BuiltIn {
  readonly plugin: {
    readonly name?: string
    readonly inject?: Inject
    apply(ctx: Context, config: never): SetupResult
  }
  readonly settled?: object
}

/** What one task needs, without a surface. */
export async function headless(options: HeadlessOptions): Promise<Context> {
  const { home, env, permission, yes = false, files = [] } = options
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, {})
  // Not a row: what a model may do is said where the program is started, and no file can switch it off.
  await ctx.plugin(approval, { mode: permission, yes })
  const builtIns: readonly BuiltIn[] = [
    { plugin: retry },
    { plugin: recovery },
    { plugin: rewind, settled: { home, env } },
    { plugin: storeJsonl, settled: { root: sessionsIn(home) } },
    { plugin: fs },
    { plugin: subprocess, settled: { env } },
    { plugin: bash },
    { plugin: llmDemo },
    { plugin: llmOpenAIChat, settled: { env } },
  ]
  if (files.length > 0) await compose(ctx, builtIns, { env, files })
  else
    for (const { plugin, settled } of builtIns)
      await ctx.plugin(plugin as PluginObject<object | undefined>, settled)
  return ctx
}

/** Mounts the rows of `files` over the built-in ones, as `ctx.loader`; loaded only where there is a file. */
async function compose(
  ctx: Context,
  builtIns: readonly BuiltIn[],
  { env, files }: { readonly env: HeadlessOptions['env']; readonly files: readonly string[] },
): Promise<void> {
  const { Composition, Loader } = await import('../kernel/loader/index.ts')
  const byName = new Map(builtIns.map(builtIn => [builtIn.plugin.name, builtIn]))
  const names = builtIns.map(({ plugin }) => plugin.name ?? '')
  const builtin = (name: string): object | undefined => {
    const found = byName.get(name)
    return found === undefined ? undefined : withSettled(found)
  }
  const loader = new Loader(ctx, { ...betweenTurns(ctx), env, builtin })
  ctx.provide('loader', loader)
  const report = (error: unknown): void => ctx.fiber.report(error, 'dsh.yml')
  const base = names.map(name => ({ id: name, name }))
  await new Composition(ctx, loader, { base, files, report }).start()
}

/** What the program settles wins over what a file says, and never stands in one. */
function withSettled({ plugin, settled }: BuiltIn): PluginObject<object | undefined> {
  const { name = '', inject = [] } = plugin
  return {
    name,
    inject,
    async apply(ctx, config) {
      await ctx.plugin(plugin as PluginObject<object>, { ...config, ...settled })
    },
  }
}

/** Stored sessions to look at; nothing here writes. */
export interface SessionReader {
  readonly sessions: SessionPersistence
  /** Values of a log by key, and restore points, where the program has them. */
  readonly ctx: Context
  close(): Promise<void>
}

/** Besides the store it has the plugins whose events a log may hold: what none declares cannot be understood. */
export async function sessionReader({ home }: Pick<HeadlessOptions, 'home'>): Promise<SessionReader> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(retry)
  await ctx.plugin(approval)
  await ctx.plugin(rewind, { home })
  await ctx.plugin(sessionProjections)
  await ctx.plugin(storeJsonl, { root: sessionsIn(home) })
  return { sessions: ctx.sessionPersistence, ctx, close: () => ctx.dispose() }
}

function sessionsIn(home: string): string {
  return join(home, 'sessions')
}
