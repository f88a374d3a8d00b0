import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { SessionId } from '@dsh/protocol'
import { AgentRegistry, betweenTurns } from '../../src/core/agent/index.ts'
import type { Agent, AgentHandle } from '../../src/core/agent/index.ts'
import { Commands } from '../../src/core/commands/index.ts'
import { LlmRuntime } from '../../src/core/llm/index.ts'
import { AgentLoop } from '../../src/core/loop/index.ts'
import { SystemPrompt } from '../../src/core/prompt/index.ts'
import { SessionStore } from '../../src/core/session/index.ts'
import { defineTool, ToolRuntime } from '../../src/core/tools/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { Composition, Loader, parseRows } from '../../src/kernel/loader/index.ts'
import type { RowPatch } from '../../src/kernel/loader/index.ts'
import { llmScripted, ScriptedAdapter } from '../../src/plugins/llm-scripted/index.ts'
import { retry } from '../../src/plugins/retry/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { say } from '../../src/testing/index.ts'

/** A host whose plugins, the core's too, are rows of a composition that can be changed while agents run. */
export interface Composed {
  readonly ctx: Context
  readonly loader: Loader
  readonly composition: Composition
  readonly adapter: ScriptedAdapter
  /** Holds the composition file `dsh.yml` and the sessions. */
  readonly dir: string
  readonly file: string
  /** Everything that was told to `internal/error`, as `plugin where: message`. */
  readonly errors: string[]
  /** What the host's own `report` was told. */
  readonly problems: string[]
  agent(id: string): Promise<AgentHandle>
  resume(id: string): Promise<AgentHandle>
}

export const route = { provider: 'mock', model: 'mock' }

/** The rows that every host has; a file changes them by their ids. */
export const baseNames = [
  'llm',
  'sessions',
  'prompt',
  'tools',
  'agents',
  'loop',
  'commands',
  'retry',
  'model',
  'store-jsonl',
  'clock',
  'notes',
] as const

/** A plugin with a tool that says which life of the plugin answers. */
function clock(): object {
  let lives = 0
  return {
    name: 'clock',
    inject: ['tools'],
    apply(ctx: Context, config: { zone?: string } | undefined) {
      const life = ++lives
      ctx.tools.register(
        defineTool({
          name: 'clock',
          description: 'Tells the time.',
          parameters: {},
          execute: () => `${config?.zone ?? 'UTC'} ${life}`,
        }),
      )
    },
  }
}

/** A plugin that has nothing to do with tools: it counts events. */
const notes = {
  name: 'notes',
  inject: ['sessions'],
  apply(ctx: Context) {
    let count = 0
    ctx.on('session/event', () => void count++, { global: true })
  },
}

export async function compose(
  t: TestContext,
  { files = {}, rows = [], plugins = {} }: ComposeOptions = {},
): Promise<Composed> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'dsh-composed-')))
  const file = join(dir, 'dsh.yml')
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true })
    await writeFile(join(dir, name), text)
  }
  const adapter = new ScriptedAdapter()
  const builtins: Readonly<Record<string, object>> = {
    llm: LlmRuntime,
    sessions: SessionStore,
    prompt: SystemPrompt,
    tools: ToolRuntime,
    agents: AgentRegistry,
    loop: AgentLoop,
    commands: Commands,
    retry,
    model: llmScripted,
    'store-jsonl': storeJsonl,
    clock: clock(),
    notes,
    ...plugins,
  }
  const configs: Readonly<Record<string, unknown>> = {
    model: { provider: 'mock', adapter },
    'store-jsonl': { root: join(dir, 'sessions') },
  }
  const ctx = new Context()
  const errors: string[] = []
  const problems: string[] = []
  ctx.on('internal/error', (error, fiber, where) => {
    errors.push(`${fiber.name} ${where}: ${error instanceof Error ? error.message : String(error)}`)
  })
  const loader = new Loader(ctx, { builtin: name => builtins[name], timeoutMs: 100, ...betweenTurns(ctx) })
  const base = baseNames.map(name => ({
    name,
    ...(configs[name] === undefined ? {} : { config: configs[name] }),
  }))
  const composition = new Composition(ctx, loader, {
    base: [...parseRows(base, undefined), ...parseRows(rows, pathToFileURL(file).href)] as RowPatch[],
    files: [file],
    report: error => void problems.push((error as Error).message),
  })
  await composition.start()
  t.after(async () => {
    await ctx.dispose()
    await rm(dir, { recursive: true, force: true })
  })
  return {
    ctx,
    loader,
    composition,
    adapter,
    dir,
    file,
    errors,
    problems,
    agent: id =>
      ctx.agents.create({ sessionId: SessionId(id), agentOptions: route, meta: { cwd: '/srv/project' } }),
    resume: id => ctx.agents.resume({ resumeSessionId: SessionId(id), agentOptions: route }),
  }
}

export interface ComposeOptions {
  /** Files that are there at the start, by their paths below `dir`; `dsh.yml` is the composition. */
  readonly files?: Readonly<Record<string, string>>
  /** Rows of the program, besides those of `baseNames`. */
  readonly rows?: readonly object[]
  /** Built-in plugins for them. */
  readonly plugins?: Readonly<Record<string, object>>
}

export async function turn(agent: Agent, text: string): Promise<void> {
  agent.followup(say(text))
  await agent.whenIdle()
}
