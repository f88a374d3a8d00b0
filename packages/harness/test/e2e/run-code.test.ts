import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import { lintLog } from '../../src/core/invariants/index.ts'
import { createUserMessage } from '../../src/core/llm/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import { approval } from '../../src/plugins/approval/index.ts'
import type { ApprovalAnswer } from '../../src/plugins/approval/index.ts'
import { codeRuntime } from '../../src/plugins/code-runtime/index.ts'
import type { CodeLanguage } from '../../src/plugins/code-runtime/index.ts'
import { text, toolCall } from '../../src/plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../src/plugins/llm-scripted/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import type { SandboxMode } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness, say } from '../../src/testing/index.ts'
import { skipWithoutBwrap } from './bwrap.ts'
import { skipWithoutPython } from './python.ts'
import { openWithPrograms } from './run-code-child.ts'

const limits = { skip: skipWithoutBwrap(), timeout: 60_000 }

async function setup({
  mode = 'workspace-write' as SandboxMode,
  isConfined = true,
  script = [] as readonly ScriptEntry[],
  maxParallelSubCalls = 10,
  language = 'typescript' as CodeLanguage,
} = {}) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-run-code-')))
  const { ctx, adapter } = await createHarness(script)
  await ctx.plugin(subprocess)
  await ctx.plugin(sandbox, { mode })
  if (!isConfined)
    ctx.plugin({
      name: 'no-sandbox',
      apply: inner => void Object.assign(inner.sandbox, { readiness: async () => noSandbox }),
    })
  await ctx.plugin(approval)
  await ctx.plugin(codeRuntime, { presentation: 'both', language, maxParallelSubCalls })
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('s'),
    meta: { cwd: dir },
    ...(script.length > 0 && { agentOptions: { provider: 'mock', model: 'mock' } }),
  })
  if (script.length === 0) agent.session.append('turn/start', { turn: 1 })
  let calls = 0
  const run = async (code: string, signal = new AbortController().signal): Promise<string> => {
    const input = { callId: CallId(`c${++calls}`), name: 'run_code', signal, agent }
    const result = await ctx.tools.execute({ ...input, arguments: { code, description: 'test it' } })
    return result.content.map(block => (block.type === 'text' ? block.text : `<${block.type}>`)).join('')
  }
  return {
    ctx,
    agent,
    requests: adapter.requests,
    run,
    answer: (answer: (toolName: string, callId: string) => ApprovalAnswer) =>
      ctx.on('approval/request', async ({ toolName, callId = '' }) => answer(toolName, callId)),
    log: (): string[] => agent.session.events.flatMap(told),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

const noSandbox = { isReady: false, reason: 'left out for the test' } as const

function told(event: SessionEvent): string[] {
  if (event.type === 'tool/code-dispatch-start') return [`start ${event.data.subCallId} ${event.data.name}`]
  if (event.type === 'tool/code-dispatch') return [`done ${event.data.subCallId}`]
  return []
}

test(
  'safe calls of a program overlap, others stand alone, and all count in the order of asking',
  limits,
  async () => {
    await using world = await setup()
    const steps: string[] = []
    const both = Promise.withResolvers<void>()
    let open = 0
    const tool = (name: string, isSafe: boolean) =>
      defineTool({
        name,
        description: 'a tool',
        parameters: { n: { type: 'integer', required: true } },
        isConcurrencySafe: () => isSafe,
        async execute({ n }) {
          steps.push(`${name} ${n}`)
          open++
          if (name === 'look' && n <= 2) {
            if (open === 2) both.resolve()
            await both.promise
            // The first one is the last to be ready.
            if (n === 1) await new Promise(resolve => setImmediate(resolve))
          }
          if (!isSafe) assert.equal(open, 1)
          open--
          return `${name} ${n}`
        },
      })
    world.ctx.tools.register(tool('look', true))
    world.ctx.tools.register(tool('change', false))
    assert.equal(
      await world.run(
        'const order = []; const all = [["look", 1], ["look", 2], ["change", 3], ["look", 4]]; const values = await Promise.all(all.map(([name, n]) => tools[name]({ n }).then(v => (order.push(n), v)))); return { order, values }',
      ),
      JSON.stringify({ order: [1, 2, 3, 4], values: ['look 1', 'look 2', 'change 3', 'look 4'] }, null, 2),
    )
    assert.deepEqual(steps, ['look 1', 'look 2', 'change 3', 'look 4'])
    assert.deepEqual(world.log(), [
      'start c1:code:1 look',
      'start c1:code:2 look',
      'done c1:code:1',
      'done c1:code:2',
      'start c1:code:3 change',
      'done c1:code:3',
      'start c1:code:4 look',
      'done c1:code:4',
    ])
  },
)

test('no more calls overlap than are allowed', limits, async () => {
  await using world = await setup({ maxParallelSubCalls: 2 })
  const two = Promise.withResolvers<void>()
  let open = 0
  let most = 0
  world.ctx.tools.register(
    defineTool({
      name: 'look',
      description: 'a tool',
      parameters: {},
      isConcurrencySafe: () => true,
      async execute() {
        most = Math.max(most, ++open)
        if (open === 2) two.resolve()
        await two.promise
        open--
        return ''
      },
    }),
  )
  await world.run('await Promise.all(Array.from({ length: 6 }, () => tools.look()))')
  assert.equal(most, 2)
})

test(
  'what a program leaves behind is cancelled and told, and what it was told is not lost',
  limits,
  async () => {
    await using world = await setup()
    const seen: string[] = []
    const begun = Promise.withResolvers<void>()
    world.ctx.tools.register(
      defineTool({
        name: 'hang',
        description: 'a tool',
        parameters: {},
        isConcurrencySafe: () => true,
        execute: (_, { signal }) =>
          new Promise<string>((_resolve, reject) => {
            begun.resolve()
            signal.addEventListener('abort', () => (seen.push('aborted'), reject(signal.reason as Error)))
          }),
      }),
    )
    world.ctx.tools.register(
      defineTool({
        name: 'ask_user',
        description: 'a tool',
        parameters: { question: { type: 'string', required: true } },
        execute: ({ question }) => `${question}: blue`,
      }),
    )
    world.ctx.tools.register(
      defineTool({
        name: 'begun',
        description: 'a tool',
        parameters: {},
        isConcurrencySafe: () => true,
        execute: async () => (await begun.promise, ''),
      }),
    )
    assert.equal(
      await world.run(
        'const begun = tools.begun(); tools.hang(); tools.ask_user({ question: "colour" }); await begun; return 1',
      ),
      '1\n[cancelled, because the program ended without awaiting them: hang, ask_user]',
    )
    assert.deepEqual(seen, ['aborted'])
    assert.deepEqual(
      world.log().filter(line => !line.includes('code:1')),
      ['start c1:code:2 hang', 'done c1:code:2'],
    )
    // Asked and answered, but nobody looked; asked and looked at, but nothing said of it.
    const question = 'tools.ask_user({ question: "colour" })'
    assert.equal(
      await world.run(`${question}; await tools.begun(); return 1`),
      '1\n[ask_user gave] colour: blue',
    )
    assert.equal(
      await world.run(`const colour = await ${question}`),
      '(no output)\n[ask_user gave] colour: blue',
    )
    assert.equal(await world.run(`return await ${question}`), 'colour: blue')
  },
)

test('a program that fails tells what it printed, and its calls fail in it by name', limits, async () => {
  await using world = await setup()
  world.ctx.tools.register(
    defineTool({
      name: 'strict',
      description: 'a tool',
      parameters: { n: { type: 'integer', required: true } },
      execute: () => 'never',
    }),
  )
  assert.equal(
    await world.run('console.log("before"); await tools.strict({ n: "x" })'),
    'Error: the program failed (exception): ToolCallError: invalid arguments: n: expected integer, got string\n[printed before]\nbefore',
  )
  assert.equal(
    await world.run('try { await tools.strict() } catch (e) { return [e.toolName, e.message] }'),
    JSON.stringify(['strict', 'invalid arguments: n: is required'], null, 2),
  )
  assert.match(await world.run('await tools.run_code({})'), /tools\.run_code is not a function/)
  const event = world.agent.session.events.findLast(({ type }) => type === 'tool/code-dispatch')
  assert.deepEqual(event?.data, {
    callId: 'c2',
    subCallId: 'c2:code:1',
    name: 'strict',
    content: [{ type: 'text', text: 'Error: invalid arguments: n: is required' }],
    isError: true,
  })
  assert.equal(event?.ignorable, true)
})

test('pictures, contexts and the end of the turn come out of a program with its result', limits, async () => {
  await using world = await setup()
  const attachment = { sha256: 'a'.repeat(64), mediaType: 'image/png', bytes: 3 }
  const context = createUserMessage({
    content: [{ type: 'text', text: 'by the way' }],
    source: { kind: 'plugin', plugin: 'test', form: 'snapshot' } as never,
  })
  world.ctx.tools.register(
    defineTool({
      name: 'show',
      description: 'a tool',
      parameters: {},
      output: 'content',
      execute(_, exec) {
        exec.deferContext(context)
        exec.concludeTurn()
        return [
          { type: 'text', text: 'a picture' },
          { type: 'image', attachment },
        ] as never
      },
    }),
  )
  const { signal } = new AbortController()
  const result = await world.ctx.tools.execute({
    callId: CallId('c'),
    name: 'run_code',
    arguments: { code: 'const [first] = await tools.show(); return first.text', description: 'x' },
    agent: world.agent,
    signal,
  })
  assert.deepEqual(result.content, [
    { type: 'text', text: 'a picture' },
    { type: 'image', attachment },
  ])
  assert.deepEqual(result.additionalContexts, [context])
  assert.equal(!result.isError && result.concludesTurn, true)
})

test('what the log keeps of long calls is cut short, and a listener may shape it', limits, async () => {
  await using world = await setup()
  world.ctx.tools.register(
    defineTool({
      name: 'long',
      description: 'a tool',
      parameters: { t: { type: 'string', required: true } },
      execute: ({ t }) => t,
    }),
  )
  assert.equal(await world.run('return (await tools.long({ t: "x".repeat(20000) })).length'), '20000')
  const bytes = world.agent.session.events
    .filter(({ type }) => type.startsWith('tool/code-dispatch'))
    .map(({ data }) => JSON.stringify(data).length)
  assert.ok(
    bytes.every(size => size > 8000 && size < 8500),
    String(bytes),
  )
  world.ctx.on('tools/code-dispatch-log', async () => [{ type: 'text', text: 'shaped' }])
  await world.run('await tools.long({ t: "x" })')
  const last = world.agent.session.last('tool/code-dispatch')
  assert.deepEqual(last?.data.content, [{ type: 'text', text: 'shaped' }])
})

test('calls of a program are asked for like any, and refused ones fail in it', limits, async () => {
  await using world = await setup()
  const asked: string[] = []
  world.answer((name, callId) => {
    asked.push(`${name} ${callId}`)
    return asked.length === 1 ? { outcome: 'allowed-once' } : { outcome: 'rejected', reason: 'not again' }
  })
  const ran: JsonValue[] = []
  world.ctx.tools.register(
    defineTool({
      name: 'far',
      description: 'a tool',
      parameters: { n: { type: 'integer', required: true } },
      effects: () => [{ kind: 'foreign', what: 'far' }],
      execute: ({ n }) => (ran.push(n), 'done'),
    }),
  )
  assert.equal(
    await world.run(
      'const first = await tools.far({ n: 1 }); try { await tools.far({ n: 2 }) } catch (e) { return [first, e.message] }',
    ),
    JSON.stringify(['done', 'the user rejected this call: not again'], null, 2),
  )
  assert.deepEqual(asked, ['far c1:code:1', 'far c1:code:2'])
  assert.deepEqual(ran, [1])
})

test(
  'where nothing confines, a program is asked for, and refused where only looking is allowed',
  limits,
  async () => {
    await using world = await setup({ isConfined: false })
    const asked: string[] = []
    const outcomes = ['allowed-once', 'rejected'] as const
    world.answer((name, callId) => ({ outcome: outcomes[asked.push(`${name} ${callId}`) - 1] ?? 'rejected' }))
    assert.equal(await world.run('return 1'), '1')
    assert.match(await world.run('return 2'), /^Error: the user rejected this call/)
    assert.deepEqual(asked, ['run_code c1', 'run_code c2'])
    world.ctx.sandboxPolicy.setMode(world.agent.session, 'read-only')
    assert.match(await world.run('return 3'), /^Error: no program runs in read-only mode/)
    world.ctx.sandboxPolicy.setMode(world.agent.session, 'full-access')
    assert.equal(await world.run('return 4'), '4')
    assert.equal(asked.length, 2)
  },
)

test('in the sandbox no program is asked for, in whichever mode', limits, async () => {
  await using world = await setup({ mode: 'read-only' })
  world.answer(() => assert.fail('asked'))
  assert.equal(await world.run('return 1'), '1')
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'full-access')
  // Confined all the same: its tools are what it may use.
  assert.match(await world.run('require("fs").readFileSync("/etc/hostname")'), /ERR_ACCESS_DENIED|restricted/)
})

test(
  'programs in Python call the same tools',
  { ...limits, skip: limits.skip || skipWithoutPython() },
  async () => {
    await using world = await setup({ language: 'python' })
    world.ctx.tools.register(
      defineTool({
        name: 'add',
        description: 'a tool',
        parameters: { a: { type: 'integer', required: true }, b: { type: 'integer', required: true } },
        output: { schema: { type: 'integer' }, render: (_args, value) => String(value) },
        execute: ({ a, b }) => a + b,
      }),
    )
    assert.equal(
      await world.run(
        'import asyncio\nsums = await asyncio.gather(tools.add(a=1, b=2), tools.add(a=3, b=4))\nprint(sums)\nasync def late():\n    return await tools.add(a="x")\ntry:\n    await late()\nexcept ToolCallError as e:\n    return e.toolName',
      ),
      '[3, 7]\nadd',
    )
    assert.deepEqual(world.log().length, 6)
  },
)

test('a cancelled call ends its program', limits, async () => {
  await using world = await setup()
  const caller = new AbortController()
  world.ctx.tools.register(
    defineTool({
      name: 'stop',
      description: 'a tool',
      parameters: {},
      execute: () => (caller.abort(), 'x'),
    }),
  )
  assert.equal(await world.run('await tools.stop(); for (;;);', caller.signal), 'Error: tool call aborted')
})

test('a turn with programs is a sound log, of which only the result reaches the model', limits, async () => {
  const code = 'return await tools.look()'
  await using world = await setup({
    script: [toolCall('run_code', { code, description: 'look' }, 'call'), text('done')],
  })
  world.ctx.tools.register(
    defineTool({ name: 'look', description: 'a tool', parameters: {}, execute: () => 'seen' }),
  )
  const { session } = world.agent
  world.agent.followup(say('go'))
  await world.agent.whenIdle()
  assert.deepEqual(lintLog(session.events), [])
  const types = session.events.map(({ type }) => type).filter(type => type.startsWith('tool/'))
  assert.deepEqual(types, ['tool/call', 'tool/code-dispatch-start', 'tool/code-dispatch', 'tool/result'])
  assert.equal(session.last('turn/end')?.data.reason.kind, 'completed')
  const [, answered] = world.requests
  assert.deepEqual(
    answered?.messages.map(({ role }) => role),
    ['user', 'user', 'assistant', 'user'],
  )
})

test('a harness that is killed amid a program resumes a sound log', limits, async t => {
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-run-code-')))
  t.after(() => fs.rmSync(base, { recursive: true, force: true }))
  fs.writeFileSync(join(base, 'dsh.yml'), '- name: code-runtime\n  config:\n    presentation: code\n')
  const child = fork(join(import.meta.dirname, 'run-code-child.ts'), [base, base], {
    execArgv: ['--conditions=dsh-source'],
    timeout: 50_000,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [told] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as unknown[]
  assert.equal(told, 'hangs')
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
  const { ctx, agent } = await openWithPrograms(base, base, undefined)
  const types = agent.session.events.flatMap(({ type }) => (type.startsWith('tool/') ? [type] : []))
  assert.deepEqual(types, [
    'tool/call',
    'tool/start',
    'tool/code-dispatch-start',
    'tool/code-dispatch',
    'tool/code-dispatch-start',
    'tool/result',
  ])
  assert.equal(agent.session.last('tool/result')?.data.error?.code, 'TOOL_OUTCOME_UNKNOWN')
  agent.followup(say('go on'))
  await agent.whenIdle()
  assert.equal(agent.session.last('turn/end')?.data.reason.kind, 'completed')
  assert.deepEqual(lintLog(agent.session.events), [])
  await ctx.dispose()
})
