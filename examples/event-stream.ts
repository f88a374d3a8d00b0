/* oxlint-disable no-console -- printing is what it is for */
// Everything that happens to an agent is an event of its session. Five short runs, printed as they are logged:
//   npx node --conditions=dsh-source examples/event-stream.ts
import { AgentRegistry } from '@dsh/harness/agent'
import type { Agent } from '@dsh/harness/agent'
import { Commands } from '@dsh/harness/commands'
import { Context } from '@dsh/harness/kernel'
import { createUserMessage, LlmRuntime } from '@dsh/harness/llm'
import { AgentLoop } from '@dsh/harness/loop'
import { ScriptedAdapter, text, toolCall } from '@dsh/harness/plugins/llm-scripted'
import type { ScriptEntry } from '@dsh/harness/plugins/llm-scripted'
import { SystemPrompt } from '@dsh/harness/prompt'
import { SessionStore } from '@dsh/harness/session'
import { defineTool, ToolRuntime } from '@dsh/harness/tools'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, UserMessage } from '@dsh/protocol'

const greet = defineTool({
  name: 'greet',
  description: 'Greet somebody by name.',
  parameters: { name: { type: 'string', required: true } },
  execute: ({ name }) => `Hello, ${name}!`,
})

/** A harness of seven plugins, with one tool, one command, and a model that answers from a script. */
async function start(script: readonly ScriptEntry[]): Promise<{ ctx: Context; agent: Agent }> {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  await ctx.plugin(SessionStore)
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(ToolRuntime)
  await ctx.plugin(AgentRegistry)
  await ctx.plugin(AgentLoop, { agents: [] })
  await ctx.plugin(Commands)
  ctx.tools.register(greet)
  ctx.commands.register({
    name: 'ping',
    description: 'Answers pong.',
    handler: () => ({ kind: 'success', text: 'pong' }),
  })
  ctx.llm.registerAdapter(['mock'], new ScriptedAdapter(script))
  const agent = ctx.agentLoop.create(SessionId('event-stream'), { provider: 'mock', model: 'mock' })
  return { ctx, agent }
}

async function run(
  title: string,
  script: readonly ScriptEntry[],
  act: (agent: Agent, ctx: Context) => unknown,
): Promise<void> {
  console.log(`=== ${title}`)
  const { ctx, agent } = await start(script)
  ctx.on('session/event', (_session, event) => print(event))
  await act(agent, ctx)
  await agent.whenIdle()
  await ctx.dispose()
}

function print({ type, data }: SessionEvent): void {
  console.log(type, JSON.stringify(data))
}

function say(words: string): UserMessage {
  return createUserMessage({ content: [{ type: 'text', text: words }], source: { kind: 'user' } })
}

/** Resolves with the first words of an answer. */
function firstWords(ctx: Context): Promise<void> {
  return new Promise(resolve => {
    ctx.on('session/event', (_session, event) => {
      if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') resolve()
    })
  })
}

await run('A: a followup is a turn of its own', [text('Hello from mock')], agent => {
  agent.followup(say('hi'))
})

await run(
  'B: a tool call goes on in the same turn',
  [toolCall('greet', { name: 'Rex' }), text('Done')],
  agent => {
    agent.followup(say('greet Rex'))
  },
)

await run('C: steering an idle agent starts a turn', [text('Steered')], agent => {
  agent.steer(say('look here'))
})

// The words that were on the screen when the turn was cancelled become an 'assistant/message' marked as interrupted:
// the next request has to hold what the person saw. An older version of the system this follows printed none here.
await run('D: cancelling in the middle of an answer', ['hang'], async (agent, ctx) => {
  const words = firstWords(ctx)
  agent.followup(say('take your time'))
  await words
  agent.cancel({ kind: 'user' })
})

await run('E: a slash command is no turn', [], async (agent, ctx) => {
  await ctx.commands.execute(agent, '/ping hello', new AbortController().signal)
})
