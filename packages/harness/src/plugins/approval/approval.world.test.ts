import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { createHarness } from '../../testing/index.ts'
import { fs as files } from '../fs/index.ts'
import { sandbox } from '../sandbox/index.ts'
import type { SandboxConfig } from '../sandbox/index.ts'
import { approval } from './index.ts'
import type { ApprovalAnswer, ApprovalConfig, ApprovalQuestion, PermissionRule } from './index.ts'

export interface WorldOptions extends Partial<ApprovalConfig & SandboxConfig> {
  /** Default true. */
  readonly confines?: boolean
  readonly inTurn?: boolean
  /** Of the rules file. */
  readonly filed?: readonly PermissionRule[]
}

/** A session in a folder, tools that do what their names say, and a sandbox that works or does not. */
export async function createWorld(options: WorldOptions = {}) {
  const { mode, cwd, confines = true, inTurn = true, filed = [], ...config } = options
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-approval-')))
  const dir = join(base, 'work')
  const rules = join(base, 'home/permissions.json')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  const problems: string[] = []
  ctx.on('internal/error', error => void problems.push((error as Error).message))
  await ctx.plugin(files, { cwd: '/' })
  await ctx.plugin(sandbox, { ...(mode && { mode }), ...(cwd && { cwd }) })
  const inner = ctx.isolate('sandbox')
  inner.provide('sandbox', {
    readiness: async () =>
      confines
        ? { isReady: true, runner: 'test', enforcement: 'full' }
        : { isReady: false, reason: 'bwrap is missing' },
    confine: async () => assert.fail('nothing is started'),
  })
  const plugin = inner.plugin(approval, { rules, ...config })
  await plugin
  const ran: string[] = []
  addTools(ctx, ran)
  if (filed.length > 0) await ctx.approval.addRules(filed)

  const agentIn = async (folder: string | undefined, id: string): Promise<Agent> => {
    const { agent } = await ctx.agents.create({
      sessionId: SessionId(id),
      meta: folder === undefined ? {} : { cwd: folder },
    })
    if (inTurn) agent.session.append('turn/start', { turn: 1 })
    return agent
  }
  const agent = await agentIn(dir, 'main')
  let calls = 0
  const call = async (
    name: string,
    args: JsonValue,
    { by = agent, signal = new AbortController().signal }: CallOptions = {},
  ): Promise<string> => {
    const input = { callId: CallId(`c${++calls}`), name, arguments: args, signal }
    const result = await ctx.tools.execute(by === null ? input : { ...input, agent: by })
    const [block] = result.content
    return block?.type === 'text' ? block.text : assert.fail('no text')
  }
  const questions: ApprovalQuestion[] = []
  return {
    ctx,
    plugin,
    base,
    dir,
    rules,
    agent,
    agentIn,
    ran,
    problems,
    questions,
    call,
    write: (file_path: string, options?: CallOptions) => call('write', { file_path, content: 'x' }, options),
    bash: (command: string, options: CallOptions & { readonly wants?: WiderAccess } = {}) =>
      call('bash', { command, ...(options.wants && { wants: options.wants }) }, options),
    answer: (answer: Answer) =>
      ctx.on('approval/request', async (question, next) => {
        questions.push(question)
        return (await answer(question)) ?? next()
      }),
    events: () =>
      agent.session.events
        .filter(({ type }) => type.startsWith('approval/') || type === 'sandbox/mode')
        .map(({ type, data }) => ({ type, ...withoutIds(data) })),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

interface CallOptions {
  readonly by?: Agent | null
  readonly signal?: AbortSignal
}

type Answer = (question: ApprovalQuestion) => Promise<ApprovalAnswer | undefined>

function withoutIds(data: SessionEvent['data']): object {
  const { id, digest, ...rest } = data as { id?: string; digest?: string }
  assert.ok(id === undefined || /^[-0-9a-f]{36}$/.test(id))
  assert.ok(digest === undefined || /^[0-9a-f]{64}$/.test(digest))
  return rest
}

export const allowed = async (): Promise<ApprovalAnswer> => ({ outcome: 'allowed-once' })

/** The access that a call was granted stands behind what it ran. */
function addTools(ctx: Context, ran: string[]): void {
  const note = (what: string, token: symbol): string => {
    const grant = ctx.sandboxPolicy.grantOf(token)
    ran.push(grant === undefined ? what : `${what} [${grant}]`)
    return 'ran'
  }
  ctx.tools.register(
    defineTool({
      name: 'bash',
      description: 'a tool',
      parameters: {
        command: { type: 'string', required: true },
        workdir: { type: 'string' },
        typed: { type: 'boolean' },
        wants: { type: 'string' },
      },
      effects: ({ command, workdir, typed, wants }) => [
        {
          kind: 'command',
          command,
          ...(workdir !== undefined && { workdir }),
          ...(typed === true && { isTyped: true as const }),
          ...(wants !== undefined && { wants: { access: wants as WiderAccess, justification: 'to see' } }),
        },
      ],
      presentCall: ({ command }) => ({ card: 'terminal', title: 'a command', data: { command } }),
      execute: ({ command }, { token }) => note(command, token),
    }),
  )
  ctx.tools.register(
    defineTool({
      name: 'other',
      description: 'a tool',
      parameters: { command: { type: 'string', required: true } },
      execute: ({ command }, { token }) => note(command, token),
    }),
  )
  ctx.tools.register(
    defineTool({
      name: 'fetch',
      description: 'a tool',
      parameters: { url: { type: 'string', required: true } },
      effects: ({ url }) => [{ kind: 'fetch', url }],
      execute: ({ url }, { token }) => note(url, token),
    }),
  )
  ctx.tools.register(
    defineTool({
      name: 'server',
      description: 'a tool',
      parameters: { what: { type: 'string', required: true } },
      effects: ({ what }) => [{ kind: 'foreign', what }],
      execute: ({ what }, { token }) => note(what, token),
    }),
  )
}
