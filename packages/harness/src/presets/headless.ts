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
import type { Fence, RowPatch } from '../kernel/loader/index.ts'
import { approval } from '../plugins/approval/index.ts'
import { attachments } from '../plugins/attachments/index.ts'
import { bash } from '../plugins/bash/index.ts'
import { destructive } from '../plugins/destructive/index.ts'
import { fs } from '../plugins/fs/index.ts'
import { hooks } from '../plugins/hooks/index.ts'
import { llmDemo } from '../plugins/llm-demo/index.ts'
import { llmOpenAIChat } from '../plugins/llm-openai-chat/index.ts'
import { recovery } from '../plugins/recovery/index.ts'
import { repeatToolGuard } from '../plugins/repeat-tool-guard/index.ts'
import { retry } from '../plugins/retry/index.ts'
import { rewind } from '../plugins/rewind/index.ts'
import { sandbox } from '../plugins/sandbox/index.ts'
import type { SandboxMode } from '../plugins/sandbox/index.ts'
import { sandboxShells } from '../plugins/sandbox-shells/index.ts'
import { search } from '../plugins/search/index.ts'
import { sessionProjections } from '../plugins/session-projections/index.ts'
import { sessionQuery } from '../plugins/session-query/index.ts'
import { spillPolicy } from '../plugins/spill-policy/index.ts'
import { storeJsonl } from '../plugins/store-jsonl/index.ts'
import { subprocess } from '../plugins/subprocess/index.ts'
import { tasks } from '../plugins/tasks/index.ts'
import { timeoutPolicy } from '../plugins/timeout-policy/index.ts'
import { title } from '../plugins/title/index.ts'
import { todo } from '../plugins/todo/index.ts'
import { toolSearch } from '../plugins/tool-search/index.ts'
import { trust } from '../plugins/trust/index.ts'
import { web } from '../plugins/web/index.ts'

/** Hears of an error that no caller waits for: what it is, whose plugin it was, and where it came up. */
export type FailureListener = (error: unknown, plugin: string, where: string) => void

export interface HeadlessOptions {
  /** Where sessions are kept. */
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Of sessions whose log says nothing else. */
  readonly permission: SandboxMode
  /** Allows what would be asked. */
  readonly yes?: boolean
  /** What the run may use up; the turn ends there. Money in USD. */
  readonly limits?: RunLimits
  /** Composition files that add, change and switch off plugins, the weakest first. */
  readonly files?: readonly string[]
  /** Holds those of a project to what a person admitted. */
  readonly fence?: Fence | undefined
  /** Hears also what fails while the plugins end. */
  readonly onFailure?: FailureListener
}

export interface RunLimits {
  readonly maxCost?: number
  readonly maxTokens?: number
  readonly maxSteps?: number
  readonly maxSeconds?: number
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

/** What a composition is made of: which plugins run unless a file says otherwise, and which it may name besides. */
interface Parts {
  readonly base: readonly BuiltIn[]
  readonly others: readonly BuiltIn[]
}

/** What one task needs, without a surface. */
export async function headless(options: HeadlessOptions): Promise<Context> {
  const { home, env, permission, yes = false, limits = {}, files = [], fence, onFailure } = options
  const isLimited = Object.keys(limits).length > 0
  const ctx = new Context()
  if (onFailure !== undefined)
    ctx.on('internal/error', (error, { name }, where) => onFailure(error, name, where))
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, {})
  // No rows: what a model may do is said where the program is started, and no file can switch them off.
  await ctx.plugin(sandbox, { mode: permission, home, env })
  await ctx.plugin(trust, { home })
  await ctx.plugin(approval, { yes, rules: join(home, 'permissions.json') })
  const [store, ...stores] = storesIn(home)
  const others = [
    ...stores,
    { plugin: budget },
    { plugin: retention },
    { plugin: strReplaceEditor },
    { plugin: sandboxBounds },
    { plugin: codeRuntime },
    { plugin: pty },
    { plugin: persistentBash },
    { plugin: telemetry, settled: hasText(env['DSH_TELEMETRY_DISABLED']) ? { disabled: true } : {} },
  ]
  const base: readonly BuiltIn[] = [
    { plugin: retry },
    { plugin: recovery },
    store,
    { plugin: rewind, settled: { home, env } },
    { plugin: destructive, settled: { yes } },
    projectionsIn(home),
    { plugin: title },
    queryIn(home),
    { plugin: attachments },
    { plugin: fs },
    { plugin: subprocess, settled: { env, ledger: join(home, 'processes') } },
    { plugin: sandboxShells },
    { plugin: tasks },
    { plugin: bash, settled: { home } },
    { plugin: hooks, settled: { home } },
    { plugin: search },
    { plugin: timeoutPolicy },
    { plugin: repeatToolGuard },
    { plugin: spillPolicy },
    { plugin: todo },
    ...(isLimited ? [{ plugin: budget, settled: limits }] : []),
    { plugin: toolSearch },
    { plugin: llmDemo },
    { plugin: llmOpenAIChat, settled: { env } },
    { plugin: web, settled: { env } },
  ]
  if (files.length > 0) await compose(ctx, { base, others }, { env, files, fence })
  else for (const builtIn of base) await mount(ctx, builtIn)
  return ctx
}

/** Mounts the rows of `files` over the built-in ones, as `ctx.loader`; loaded only where there is a file. */
async function compose(
  ctx: Context,
  parts: Parts,
  { env, files, fence }: Pick<HeadlessOptions, 'env' | 'fence'> & { readonly files: readonly string[] },
): Promise<void> {
  const { Composition, Loader } = await import('../kernel/loader/index.ts')
  const loader = new Loader(ctx, { ...betweenTurns(ctx), env, builtin: finder(parts), fence })
  ctx.provide('loader', loader)
  const report = (error: unknown): void => ctx.fiber.report(error, 'dsh.yml')
  await new Composition(ctx, loader, { base: rowsOf(parts), files, fence, report }).start()
}

async function mount(ctx: Context, { plugin, settled }: BuiltIn): Promise<void> {
  await ctx.plugin(plugin as PluginObject<object | undefined>, settled)
}

function rowsOf({ base }: Parts): readonly { readonly id: string; readonly name: string }[] {
  return base.map(({ plugin: { name = '' } }) => ({ id: name, name }))
}

function finder({ base, others }: Parts): (name: string) => object | undefined {
  const byName = new Map([...others, ...base].map(builtIn => [builtIn.plugin.name, builtIn]))
  return name => {
    const found = byName.get(name)
    return found === undefined ? undefined : withSettled(found)
  }
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
export async function sessionReader({
  home,
  env = {},
  files = [],
}: Pick<HeadlessOptions, 'home' | 'files'> & Partial<Pick<HeadlessOptions, 'env'>>): Promise<SessionReader> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(retry)
  await ctx.plugin(sandbox)
  await ctx.plugin(approval)
  const [store, ...others] = storesIn(home)
  if (files.length > 0) await composeStore(ctx, { base: [store], others }, { env, files })
  else await mount(ctx, store)
  await ctx.plugin(rewind, { home })
  await mount(ctx, projectionsIn(home))
  await ctx.plugin(title)
  await mount(ctx, queryIn(home))
  return {
    get sessions() {
      return ctx.sessionPersistence
    },
    ctx,
    close: () => ctx.dispose(),
  }
}

/** Mounts the store that `files` choose, and nothing else of them: to read needs no plugin of a person. */
async function composeStore(
  ctx: Context,
  parts: Parts,
  { env, files }: { readonly env: HeadlessOptions['env']; readonly files: readonly string[] },
): Promise<void> {
  const { Loader, readComposition } = await import('../kernel/loader/index.ts')
  const names = [...parts.base, ...parts.others].map(({ plugin }) => plugin.name)
  const isStore = ({ id, name = id }: RowPatch): boolean => names.includes(name) || names.includes(id)
  const onlyStores = (rows: readonly RowPatch[]): readonly RowPatch[] =>
    rows.flatMap(row =>
      row.rows === undefined ? [row].filter(isStore) : [{ ...row, rows: onlyStores(row.rows) }],
    )
  const layers = await Promise.all(
    files.map(async file => {
      const { rows } = await readComposition(file).catch((error: unknown) => {
        ctx.fiber.report(error, 'dsh.yml')
        return { rows: [] }
      })
      return onlyStores(rows)
    }),
  )
  const loader = new Loader(ctx, { env, builtin: finder(parts) })
  ctx.provide('loader', loader)
  await loader.apply([rowsOf(parts), ...layers])
}

function projectionsIn(home: string): BuiltIn {
  return { plugin: sessionProjections, settled: { folder: join(home, 'cache', 'projections') } }
}

function queryIn(home: string): BuiltIn {
  return { plugin: sessionQuery, settled: { path: join(home, 'cache', 'index.sqlite') } }
}

/** Where sessions can be kept; the first is the one that runs unless a file says otherwise. */
function storesIn(home: string): readonly [BuiltIn, ...BuiltIn[]] {
  return [
    { plugin: storeJsonl, settled: { root: join(home, 'sessions') } },
    { plugin: storeSqlite, settled: { path: join(home, 'sessions.sqlite') } },
  ]
}

const storeSqlite = whenChosen(
  'store-sqlite',
  async () => (await import('../plugins/store-sqlite/index.ts')).storeSqlite,
)
const budget = whenChosen('budget', async () => (await import('../plugins/budget/index.ts')).budget)
const retention = whenChosen(
  'retention',
  async () => (await import('../plugins/retention/index.ts')).retention,
)
/** Its row is named `sandbox`, as people look for it: the sandbox itself is none, so that no file can switch it off. */
const sandboxBounds = whenChosen(
  'sandbox',
  async () => (await import('../plugins/sandbox/index.ts')).sandboxBounds,
)
const codeRuntime = whenChosen(
  'code-runtime',
  async () => (await import('../plugins/code-runtime/index.ts')).codeRuntime,
)
const pty = whenChosen('pty', async () => (await import('../plugins/pty/index.ts')).pty)
const persistentBash = whenChosen(
  'persistent-bash',
  async () => (await import('../plugins/persistent-bash/index.ts')).persistentBash,
)
const strReplaceEditor = whenChosen(
  'str-replace-editor',
  async () => (await import('../plugins/str-replace-editor/index.ts')).strReplaceEditor,
)
const telemetry = whenChosen(
  'telemetry',
  async () => (await import('../plugins/telemetry/index.ts')).telemetry,
)

/** A plugin whose module is loaded by whoever chose it. */
function whenChosen(name: string, load: () => Promise<BuiltIn['plugin']>): PluginObject<object> {
  return {
    name,
    inject: ['sessions'],
    async apply(ctx, config) {
      await ctx.plugin((await load()) as PluginObject<object>, config)
    },
  }
}

function hasText(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}
