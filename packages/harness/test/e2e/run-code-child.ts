import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { defineTool } from '../../src/core/tools/index.ts'
import { ScriptedAdapter, text, toolCall } from '../../src/plugins/llm-scripted/index.ts'
import { headless } from '../../src/presets/headless.ts'
import { say } from '../../src/testing/index.ts'

/** The preset with programs, a scripted model, and tools of which one never ends. */
export async function openWithPrograms(home: string, cwd: string, code: string | undefined) {
  const { PATH } = process.env
  const ctx = await headless({
    home,
    env: { PATH },
    permission: 'workspace-write',
    files: [join(home, 'dsh.yml')],
  })
  const call = code === undefined ? [] : [toolCall('run_code', { code, description: 'test it' }, 'call')]
  ctx.llm.registerAdapter(['mock'], new ScriptedAdapter([...call, text('done')]))
  ctx.tools.register(
    defineTool({ name: 'quick', description: 'a tool', parameters: {}, execute: () => 'quick' }),
  )
  ctx.tools.register(
    defineTool({
      name: 'hang',
      description: 'a tool',
      parameters: {},
      async execute(_, { agent }) {
        if (agent !== undefined) await ctx.sessions.flush(agent.session)
        process.send?.('hangs')
        return await new Promise<string>(() => {})
      },
    }),
  )
  const options = { agentOptions: { provider: 'mock', model: 'mock' } }
  const sessionId = SessionId('s')
  const { agent } =
    code === undefined
      ? await ctx.agents.resume({ resumeSessionId: sessionId, ...options })
      : await ctx.agents.create({ sessionId, meta: { cwd }, ...options })
  return { ctx, agent }
}

// node run-code-child.ts HOME CWD — works until it is killed.
if (process.send !== undefined && process.argv[1] === import.meta.filename) {
  const [home = '', cwd = ''] = process.argv.slice(2)
  const { agent } = await openWithPrograms(home, cwd, 'await tools.quick(); await tools.hang()')
  agent.followup(say('go'))
  await agent.whenIdle()
}
