import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness } from '../../testing/index.ts'
import { subprocess } from '../subprocess/index.ts'
import { describeExit } from './exit.ts'
import { readFrame } from './frames.ts'
import { codeRuntime } from './index.ts'
import type { CodeLanguage, CodeNamespace } from './index.ts'
import { limited } from './limits.ts'
import { Lines } from './lines.ts'
import { readBindings } from './namespaces.ts'
import { nodeLanguage } from './node.ts'
import { OutputBudget } from './output.ts'
import { renderFailure, renderProgram } from './tools/render.ts'
import type { SubCall } from './tools/sub-calls.ts'

const echo = async (args: JsonValue): Promise<JsonValue> => args
const space = (parts: Partial<CodeNamespace>): CodeNamespace => ({ global: 'tools', functions: {}, ...parts })

test('names that either language has taken cannot be bound, and no name twice', () => {
  const refuse = (namespaces: CodeNamespace[], message: RegExp): void =>
    assert.throws(() => readBindings(namespaces), { name: 'TypeError', message })
  for (const global of [
    '',
    '1a',
    'a-b',
    'é',
    'await',
    'lambda',
    'None',
    'console',
    '__builtins__',
    'arguments',
  ])
    refuse([space({ global })], /cannot be the name of something in a program/)
  refuse([space({}), space({})], /"tools" is bound twice/)
  refuse([space({ errorClass: { name: 'tools', memberNameProperty: 'of' } })], /"tools" is bound twice/)
  for (const memberNameProperty of [
    'name',
    'message',
    'stack',
    'args',
    'with_traceback',
    'add_note',
    '__x__',
  ])
    refuse([space({ errorClass: { name: 'E', memberNameProperty } })], /cannot be a property of an error/)
  refuse([space({ functions: { a: 1 as never } })], /"a" of "tools" is no function/)
})

test('functions are found by their own names alone, whatever these are', () => {
  const functions = Object.defineProperty({ constructor: echo, 'a b': echo }, '__proto__', {
    value: echo,
    enumerable: true,
  })
  const { shapes, find } = readBindings([space({ functions })])
  assert.deepEqual(shapes, [{ global: 'tools', functions: ['constructor', 'a b', '__proto__'] }])
  assert.equal(find('tools', '__proto__'), echo)
  for (const name of ['toString', 'hasOwnProperty', '']) assert.equal(find('tools', name), undefined)
  assert.equal(find('others', 'constructor'), undefined)
})

test('a frame is believed in its form alone', () => {
  const read = (frame: unknown, hasBigIntegers = false) =>
    readFrame(typeof frame === 'string' ? frame : JSON.stringify(frame), { hasBigIntegers })
  const call = { type: 'call', id: 1, global: 'tools', name: 'a' }
  assert.deepEqual(read({ ...call, args: [1], more: 2 }), { ...call, args: [1] })
  for (const id of [0, -1, 1.5, '1', null, 2 ** 60]) assert.equal(read({ ...call, id }), undefined)
  for (const bad of ['', 'x', '[]', 'null', '1', { type: 'exec' }, { ...call, name: 1 }, { type: 'log' }])
    assert.equal(read(bad), undefined)
  assert.deepEqual(read('{"type":"call","id":1,"global":"g","name":"n","args":1e999}'), {
    ...call,
    global: 'g',
    name: 'n',
    args: undefined,
  })
  const lost = { kind: 'invalid-output', message: 'the program returned what JSON does not keep' }
  assert.deepEqual(read('{"type":"done","value":[-0]}'), { type: 'done', unread: [], error: lost })
  assert.deepEqual(read({ type: 'done', unread: [2, 'x', -1] }), { type: 'done', unread: [2] })
  assert.deepEqual(read({ type: 'done', error: { kind: 'abort', message: 1 } }), {
    type: 'done',
    unread: [],
    error: { kind: 'exception', message: '1' },
  })
  const big = '{"type":"done","value":{"9007199254740993":["9007199254740993 \\" 9007199254740993",1.5]}}'
  assert.equal(read(big, true)?.type === 'done' && 'error' in (read(big, true) ?? {}), false)
  const unsafe = '{"type":"done","value":9007199254740993}'
  assert.deepEqual(read(unsafe), { type: 'done', unread: [], value: 9007199254740992 })
  assert.deepEqual(read(unsafe, true), { type: 'done', unread: [], error: lost })
})

test('lines come whole, however the bytes were cut', () => {
  const bytes = Buffer.from('é1\n\n2\nrest')
  for (let size = 1; size <= bytes.length; size++) {
    const lines: string[] = []
    const reader = new Lines(line => lines.push(line))
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
    assert.equal(reader.held, 4)
    reader.end()
    assert.deepEqual(lines, ['é1', '', '2', 'rest'])
  }
})

test('output fits up to its last byte, and what comes after the first that does not is not kept', () => {
  // [] and "ab" and , and "é"
  for (const [max, kept] of [
    [5, []],
    [6, ['ab']],
    [10, ['ab']],
    [11, ['ab', 'é']],
  ] as const) {
    const output = new OutputBudget(max)
    for (const text of ['ab', 'é']) output.log(text)
    assert.deepEqual([output.logs, output.isFull], [kept, max !== 11])
    output.log('')
    assert.deepEqual(output.logs, kept)
  }
  assert.equal(new OutputBudget(5).takes('"é"'), false)
  assert.equal(new OutputBudget(6).takes('"é"'), true)
})

test('types are erased, lines are kept, and what is no program has no process', () => {
  const prepare = (program: string) => nodeLanguage.prepare(program, readBindings([space({})]).shapes)
  const source = (program: string) => `(async function __dsh_main__(tools) {'use strict';\n${program}\n})`
  assert.deepEqual(prepare('return 1 // end'), { source: source('return 1 // end') })
  assert.deepEqual(prepare('const a: number = 1'), { source: source('const a         = 1') })
  // Reads as comparisons too, and means something else then.
  assert.deepEqual(prepare('return f<A>(1)'), { source: source('return f   (1)') })
  assert.deepEqual(prepare('return a < 1 && ((b) => (b))'), {
    source: source('return a < 1 && ((b) => (b))'),
  })
  assert.deepEqual(prepare('\nenum A { B }'), {
    problem: 'SyntaxError: TypeScript enum is not supported in strip-only mode (line 2)',
  })
  assert.deepEqual(prepare('let a = = 2'), { problem: 'SyntaxError: Expression expected (line 1)' })
  assert.match((prepare('const tools = 1') as { problem: string }).problem, /tools.*\(line 1\)$/)
})

test('limits stand before the program, and each that a system lacks is left out', () => {
  const argv = limited(['/bin/x', '-y'], { cpuSeconds: 3, others: ['-v 9'] })
  const script =
    'ulimit -c 0 2>/dev/null; ulimit -f 0 2>/dev/null; ulimit -v 9 2>/dev/null; ulimit -S -t 3 2>/dev/null; ulimit -H -t 4 2>/dev/null; exec "$@"'
  assert.deepEqual(argv, ['/bin/sh', '-c', script, 'sh', '/bin/x', '-y'])
})

test('how a process ended tells what became of its program', () => {
  const limits = { cpuSeconds: 60, memoryMb: 512 }
  const exit = { exitCode: 1, signal: null, pipesHeld: false }
  const confined = {
    argv: ['bwrap'],
    enforcement: 'full',
    denialSignatures: [],
    runnerFailureRules: [{ fatalSignatures: ['bwrap: '] }],
  } as const
  const facts = { stderr: '', limits, confined, hasBooted: true }
  const busy = { kind: 'timeout', message: 'the program used more than 60 s of processor time' }
  assert.deepEqual(describeExit({ ...exit, exitCode: null, signal: 'SIGXCPU' }, facts), busy)
  assert.deepEqual(describeExit({ ...exit, exitCode: 152 }, facts), busy)
  const of = (
    ...[how, more]: [Partial<typeof exit>, Partial<Parameters<typeof describeExit>[1]>]
  ): string => {
    const { kind, message } = describeExit({ ...exit, ...how }, { ...facts, ...more })
    assert.equal(kind, 'worker-exit')
    return message
  }
  assert.equal(
    of({ exitCode: 134 }, { stderr: 'FATAL ERROR: … JavaScript heap out of memory' }),
    'the program used more than 512 MiB of memory',
  )
  assert.equal(
    of({}, { stderr: 'bwrap: said by the program\n' }),
    "the program's process ended with exit code 1\nbwrap: said by the program",
  )
  assert.equal(
    of({}, { hasBooted: false, stderr: 'bwrap: no namespaces\n' }),
    'the sandbox failed, and the program did not run: bwrap: no namespaces',
  )
  assert.equal(
    of({ exitCode: 127 }, { hasBooted: false, confined: undefined, stderr: 'sh: no node' }),
    'the program could not be started: its process ended with exit code 127\nsh: no node',
  )
})

function callOf(name: string, text: string, more: Partial<SubCall> = {}): SubCall {
  const content = [{ type: 'text', text }] as const
  return { name, isLate: false, result: { isError: false, value: text, content }, ...more }
}

test('a model reads what a program printed and returned, and what it was told and did not look at', () => {
  const calls = [callOf('ask', 'yes'), callOf('read', 'text')]
  assert.equal(renderProgram({ logs: ['a', 'b'], value: 'c' }, calls), 'a\nb\nc')
  assert.equal(renderProgram({ logs: [], value: { a: [1] } }, []), '{\n  "a": [\n    1\n  ]\n}')
  assert.equal(renderProgram({ logs: [] }, []), '(no output)')
  assert.equal(renderProgram({ logs: [] }, calls), '(no output)\n[ask gave] yes\n[read gave] text')
  assert.equal(renderProgram({ logs: [], value: 1, unread: [1] }, calls), '1\n[ask gave] yes')
  const aborted = { message: 'aborted', info: { name: 'AbortError', code: 'ABORTED' } }
  const late = [
    callOf('bash', 'done', { isLate: true }),
    callOf('ask', '', { isLate: true, result: { isError: true, error: aborted, content: [] } }),
    { name: 'write', isLate: false },
  ]
  assert.equal(
    renderProgram({ logs: ['x'] }, late),
    'x\n[bash gave] done\n[cancelled, because the program ended without awaiting them: ask, write]',
  )
  const many = Array.from({ length: 12 }, (_, index) => callOf(`t${index}`, 'x'.repeat(3000)))
  const [, first = '', ...rest] = renderProgram({ logs: [] }, many).split('\n')
  assert.equal(first.length, '[t0 gave] '.length + 2000 - '…'.length - 1)
  assert.equal(rest.at(-1), '[and 2 more results]')
  let deep: JsonValue = []
  for (let level = 0; level < 50_000; level++) deep = [deep]
  assert.equal(renderProgram({ logs: [], value: deep }, []).length, 100_002)
})

test('a model reads why a program failed before what it printed', () => {
  const error = { kind: 'exception', message: 'TypeError: boom' } as const
  assert.equal(
    renderFailure({ logs: ['a'], error, unread: [1] }, [callOf('ask', 'yes')]),
    'the program failed (exception): TypeError: boom\n[printed before]\na\n[ask gave] yes',
  )
  assert.equal(renderFailure({ logs: [], error }, []), 'the program failed (exception): TypeError: boom')
})

async function setup(language: CodeLanguage, presentation: 'native' | 'code' | 'both') {
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess)
  const plugin = ctx.plugin(codeRuntime, { language, presentation })
  await plugin
  ctx.tools.register(
    defineTool({
      name: 'find',
      description: 'Find {{things}}\n  by name.',
      parameters: {
        kind: { type: 'string', enum: ['file', 'folder'] },
        name: { type: 'string', required: true, description: 'a part */ of it' },
        where: {
          type: 'object',
          additionalProperties: false,
          properties: { depth: { type: 'integer', required: true } },
        },
        not: { type: 'array', items: { oneOf: [{ type: 'string' }, { type: 'null' }] } },
      },
      output: { schema: { type: 'array', items: { type: 'string' } }, render: () => 'found' },
      execute: () => ['a'],
    }),
  )
  ctx.tools.register(
    defineTool({ name: 'now', description: 'Tell the time.', parameters: {}, execute: () => '12' }),
  )
  ctx.tools.register(
    defineTool({
      name: 'rare-one',
      description: 'Later.',
      parameters: {},
      deferred: true,
      execute: () => '',
    }),
  )
  const section = async (offered: readonly string[] = []): Promise<string | undefined> => {
    const { sections } = await ctx.systemPrompt.assemble({ offeredTools: new Set(offered) })
    return sections.find(({ name }) => name === 'tool:run_code')?.text
  }
  return { ctx, plugin, section }
}

test('programs in TypeScript are told of the calls they can make', async () => {
  const { ctx, section } = await setup('typescript', 'both')
  const text = await section()
  assert.equal(
    text,
    `run_code runs TypeScript without files, processes and network of its own: everything goes through \`tools\`. Each call gives a promise; independent ones go into one Promise.all. A call that fails throws ToolCallError {toolName, message}. Types are erased: no enums, no namespaces. Print or return what you want to see; the values of calls are not shown otherwise. The calls:
tools.find(args: { name: string /* a part * / of it */; kind?: "file" | "folder"; where?: { depth: number }; not?: (string | null)[] }): Promise<string[]> // Find {{things}} by name.
tools.now(): Promise<string> // Tell the time.`,
  )
  assert.equal(await section(['rare-one']), `${text}\ntools["rare-one"](): Promise<string> // Later.`)
  assert.deepEqual(
    ctx.tools.schemas().map(({ name }) => name),
    ['find', 'now', 'run_code'],
  )
  await ctx.dispose()
})

test('programs in Python are told of the calls they can make', async () => {
  const { ctx, section } = await setup('python', 'code')
  assert.equal(
    await section(),
    `run_code runs Python without files to write, processes and network of its own: everything goes through \`tools\`. Each call is awaited; independent ones go into one asyncio.gather. A call that fails raises ToolCallError with toolName. Print or return what you want to see; the values of calls are not shown otherwise. The calls:
tools.find(name: str, kind: Literal["file", "folder"] = ..., where: {"depth": int} = ..., not: list[str | None] = ...) -> list[str]  # Find {{things}} by name. name: a part */ of it
tools.now() -> str  # Tell the time.`,
  )
  assert.deepEqual(
    ctx.tools.schemas().map(({ name }) => name),
    ['run_code'],
  )
  await ctx.dispose()
})

test('as tools are offered natively there is no run_code, and everything goes with the plugin', async () => {
  const native = await setup('typescript', 'native')
  assert.equal(await native.section(), '')
  assert.equal(native.ctx.tools.get('run_code'), undefined)
  const { ctx, plugin, section } = await setup('typescript', 'code')
  const { codeRuntime: service } = ctx
  await plugin.dispose()
  assert.equal(await section(), undefined)
  assert.equal(ctx.get('codeRuntime'), undefined)
  assert.deepEqual(
    ctx.tools.schemas().map(({ name }) => name),
    ['find', 'now'],
  )
  await assert.rejects(service.run({ program: 'return 1', bindings: [] }), { code: 'CODE_RUNTIME_CLOSED' })
})

test('an event of a program that says nothing we know is refused when it is written', async () => {
  const { ctx } = await setup('typescript', 'native')
  const session = ctx.sessions.create()
  const append = session.append.bind(session) as (type: string, data: unknown) => void
  const call = { callId: 'c', subCallId: 'c:code:1', name: 'x' }
  for (const [type, data] of [
    ['tool/code-dispatch-start', { ...call, subCallId: '' }],
    ['tool/code-dispatch', { ...call, content: [{}], isError: false }],
    ['tool/code-dispatch', { ...call, content: [] }],
  ] as const)
    assert.throws(() => append(type, data), { code: 'INVALID_EVENT' })
  append('tool/code-dispatch-start', { ...call, arguments: {}, later: 'field' })
  await ctx.dispose()
})

test('what run_code asks of a model, and what it would do', async () => {
  const { ctx } = await setup('typescript', 'code')
  const [schema] = ctx.tools.schemas()
  assert.deepEqual(schema, {
    name: 'run_code',
    description:
      'Run a TypeScript program that calls tools as `await tools.NAME({...})`. It is the body of an async function; what it prints and returns is the result.',
    parameters: {
      type: 'object',
      properties: {
        code: { type: 'string' },
        description: { type: 'string', description: 'what it does, in 5-10 words' },
      },
      required: ['code', 'description'],
    },
  })
  const args = { code: 'return 1', description: 'one' }
  assert.deepEqual(await ctx.tools.effectsOf({ name: 'run_code', arguments: args }), [
    { kind: 'program', language: 'typescript', program: 'return 1' },
  ])
  assert.equal(ctx.tools.executionMode({ name: 'run_code', arguments: args }), 'exclusive')
  const { signal } = new AbortController()
  const result = await ctx.tools.execute({ callId: CallId('c'), name: 'run_code', arguments: args, signal })
  assert.deepEqual(result.content, [
    {
      type: 'text',
      text: 'Error: the program failed (worker-exit): nothing here can confine a program: no sandbox is loaded',
    },
  ])
  await ctx.dispose()
})
