import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '@dsh/protocol'
import { Context, jsonEquals } from '../../src/kernel/index.ts'
import type {
  CodeLanguage,
  CodeNamespace,
  CodeResult,
  CodeRun,
} from '../../src/plugins/code-runtime/index.ts'
import { localCodeRuntime } from '../../src/plugins/code-runtime/index.ts'
import { readBindings } from '../../src/plugins/code-runtime/namespaces.ts'
import { ProgramRun } from '../../src/plugins/code-runtime/run.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { skipWithoutPython } from './python.ts'

const skipPython = skipWithoutPython()

const open = {
  mode: 'full-access',
  network: true,
  workspaceRoot: '/',
  writableRoots: [],
  protectedPaths: [],
  unreadablePaths: [],
  readablePaths: [],
} as const

type Config = Parameters<typeof localCodeRuntime.apply>[1]

async function setup(config: Partial<Config> = {}) {
  const ctx = new Context()
  await ctx.plugin(subprocess)
  await ctx.plugin(localCodeRuntime, config)
  const asked: JsonValue[] = []
  const late = Promise.withResolvers<JsonValue>()
  const functions: CodeNamespace['functions'] = Object.defineProperty(
    {
      echo: async (args: JsonValue) => (asked.push(args), args),
      fail: async () => {
        throw new Error('no luck')
      },
      late: () => (asked.push('late'), late.promise),
      lossy: async () => ({ a: undefined }) as never,
      'odd name': async () => 'odd',
    },
    '__proto__',
    { value: async () => 'own', enumerable: true },
  )
  const errorClass = { name: 'ToolCallError', memberNameProperty: 'toolName' }
  const run = (program: string, more: Partial<CodeRun> = {}): Promise<CodeResult> =>
    ctx.codeRuntime.run({
      program,
      bindings: [{ global: 'tools', functions, errorClass }],
      policy: open,
      signal: AbortSignal.timeout(30_000),
      ...more,
    })
  return { ctx, run, asked, late, [Symbol.asyncDispose]: () => ctx.dispose() }
}

const cases: Readonly<
  Record<CodeLanguage, readonly (readonly [title: string, program: string, result: unknown])[]>
> = {
  typescript: [
    ['a value', 'return { a: [1, "é", null, true] }', { value: { a: [1, 'é', null, true] }, logs: [] }],
    ['nothing', 'const x: number = 1', { logs: [] }],
    [
      'what is printed, in order',
      'console.log("a", {b: 1}); process.stdout.write("c\\nd"); console.error("e\\nf"); require("fs").writeSync(1, "g\\n")',
      { logs: ['a { b: 1 }', 'c', 'd', 'e\nf', 'g'] },
    ],
    [
      'an exception',
      '\nthrow new TypeError("boom")',
      failure('exception', 'TypeError: boom\n    at __dsh_main__ (program.ts:2:7)'),
    ],
    ['something else thrown', 'throw 7', failure('exception', 'thrown: 7')],
    [
      'an error that cannot be shown',
      'throw new Proxy({}, { getPrototypeOf() { throw 1 } })',
      failure('exception', '<unprintable thrown value>'),
    ],
    [
      'a lost promise',
      'Promise.reject(new Error("lost")); await new Promise(r => setTimeout(r, 5000))',
      failure('exception', /^Error: lost/),
    ],
    [
      'waiting for ever',
      'await new Promise(() => {})',
      failure('exception', 'Error: the program waits for what will never come'),
    ],
    [
      'a value that JSON loses',
      'return { a: [undefined] }',
      failure('invalid-output', 'value.a[0] is undefined'),
    ],
    ['a number that JSON loses', 'return -0', failure('invalid-output', 'value is -0')],
    ['a list with a hole', 'return [1, , 2]', failure('invalid-output', 'value has holes or names')],
    [
      'a cycle',
      'const a = {}; a.b = { a }; return a',
      failure('invalid-output', 'value.b.a contains itself'),
    ],
    [
      'an accessor',
      'return { get a() { return 1 } }',
      failure('invalid-output', 'value.a is no plain property'),
    ],
    ['an object of a class', 'return new Date()', failure('invalid-output', 'value is no plain object')],
    [
      'an exit',
      'console.log("a"); process.exit(3)',
      failure('worker-exit', "the program's process ended with exit code 3", ['a']),
    ],
    ['a call', 'return await tools.echo({ a: 1 })', { value: { a: 1 }, logs: [] }],
    [
      'no arguments',
      'return [await tools.echo(), await tools.echo(undefined), await tools.echo({})]',
      { value: [{}, {}, {}], logs: [] },
    ],
    [
      'arguments that JSON loses',
      'try { await tools.echo({ a: [NaN] }) } catch (e) { return e.message }',
      { value: 'arguments.a[0] is NaN', logs: [] },
    ],
    [
      'a call that fails',
      'try { await tools.fail() } catch (e) { return [e instanceof ToolCallError, e.name, e.toolName, e.message] }',
      { value: [true, 'ToolCallError', 'fail', 'no luck'], logs: [] },
    ],
    [
      'an answer that JSON loses',
      'try { await tools.lossy() } catch (e) { return e.message }',
      { value: 'the answer.a is undefined, which JSON does not keep', logs: [] },
    ],
    [
      'names of prototypes',
      'return [await tools.__proto__(), typeof tools.toString, await tools["odd name"]()]',
      { value: ['own', 'undefined', 'odd'], logs: [] },
    ],
    [
      'answers nobody looked at',
      'tools.echo({ a: 1 }); tools.fail(); await tools.echo({})',
      { logs: [], unread: [1, 2] },
    ],
    [
      'a call with wrong arguments that nobody awaits',
      'tools.echo(1n); await tools.echo()',
      failure('exception', /^TypeError: arguments is a bigint/),
    ],
    [
      'globals that are gone',
      'JSON.stringify = JSON.parse = Object.keys = Reflect.ownKeys = Promise.prototype.then = Array.prototype.push = null; Object.prototype.toJSON = () => 1; console.log(1); return await tools.echo({ a: [1] })',
      { value: { a: [1] }, logs: ['1'] },
    ],
    ['no environment', 'return Object.keys(process.env)', { value: [], logs: [] }],
    [
      'type arguments',
      'function id<T>(x: T): T { return x }\nreturn id<string>("x")',
      { value: 'x', logs: [] },
    ],
    ['modules of Node', 'return (await import("node:path")).join("a", "b")', { value: 'a/b', logs: [] }],
  ],
  python: [
    [
      'a value',
      'return {"a": [1, "é", None, True, 1.5]}',
      { value: { a: [1, 'é', null, true, 1.5] }, logs: [] },
    ],
    ['nothing', 'x: int = 1', { logs: [] }],
    ['nothing at all', '', { logs: [] }],
    [
      'what is printed, in order',
      'import os\nprint("a", {"b": 1}, end="")\nprint("c")\nos.write(1, b"d\\n")\nos.write(2, b"e\\n")',
      { logs: ["a {'b': 1}c", 'd', 'e'] },
    ],
    [
      'an exception',
      '\nraise TypeError("boom")',
      failure('exception', 'TypeError: boom\n    at __dsh_main__ (program.py:2)'),
    ],
    ['what is no program', 'return (', failure('exception', /SyntaxError: '\(' was never closed$/)],
    [
      'a value that JSON loses',
      'return {"a": [{1}]}',
      failure('invalid-output', 'value.a[0] is of type set'),
    ],
    [
      'a whole number that JavaScript loses',
      'return [2**53]',
      failure('invalid-output', 'value[0] is a whole number above 2**53 - 1'),
    ],
    ['no number', 'return float("nan")', failure('invalid-output', 'value is nan')],
    ['half a character', 'return "\\ud83d"', failure('invalid-output', 'value has half a character')],
    ['a key that is no text', 'return {1: 2}', failure('invalid-output', 'value has a key of type int')],
    ['a cycle', 'a = []\na.append(a)\nreturn a', failure('invalid-output', 'value[0] contains itself')],
    [
      'an exit',
      'import sys\nprint("a")\nsys.exit(3)',
      failure('worker-exit', "the program's process ended with exit code 3", ['a']),
    ],
    [
      'a call',
      'return [await tools.echo(a=1), await tools.echo({"a": 2})]',
      { value: [{ a: 1 }, { a: 2 }], logs: [] },
    ],
    [
      'no arguments',
      'return [await tools.echo(), await tools.echo(None), await tools.echo({})]',
      { value: [{}, {}, {}], logs: [] },
    ],
    [
      'arguments that JSON loses',
      'try:\n  await tools.echo(a=2**60)\nexcept Exception as e:\n  return str(e)',
      { value: 'arguments.a is a whole number above 2**53 - 1', logs: [] },
    ],
    [
      'a call that fails',
      'try:\n  await tools.fail()\nexcept ToolCallError as e:\n  return [e.toolName, str(e)]',
      { value: ['fail', 'no luck'], logs: [] },
    ],
    [
      'names of prototypes',
      'return [await tools["__proto__"](), hasattr(tools, "__class__"), await tools["odd name"]()]',
      { value: ['own', false, 'odd'], logs: [] },
    ],
    [
      'answers nobody looked at',
      'tools.echo(a=1)\ntools.fail()\nawait tools.echo()',
      { logs: [], unread: [1, 2] },
    ],
    [
      'calls side by side',
      'import asyncio\nreturn await asyncio.gather(tools.echo(a=1), tools.echo(a=2))',
      { value: [{ a: 1 }, { a: 2 }], logs: [] },
    ],
    ['no environment', 'import os\nreturn dict(os.environ)', { value: {}, logs: [] }],
    [
      'more memory than there is',
      'a = []\nwhile True: a.append(bytearray(10**7))',
      failure('exception', /^MemoryError/),
    ],
  ],
}

function failure(kind: string, message: string | RegExp, logs: readonly string[] = []) {
  return { error: { kind, message }, logs }
}

function assertResult(result: CodeResult, expected: unknown, title: string): void {
  const { error } = expected as { error?: { message: string | RegExp } }
  if (!(error?.message instanceof RegExp)) {
    assert.deepEqual(result, expected, title)
    return
  }
  assert.match(result.error?.message ?? '', error.message, title)
  const plain = { ...result, error: { ...result.error, message: error.message } }
  assert.deepEqual(plain, expected, title)
}

for (const language of ['typescript', 'python'] as const) {
  const options = { skip: language === 'python' && skipPython }

  test(`what programs in ${language} give, print, ask for and fail at`, options, async () => {
    await using world = await setup({ language, memoryMb: 256 })
    const waiting = cases[language].map(([title, program, expected]) => ({ title, program, expected }))
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        assertResult(await world.run(next.program), next.expected, next.title)
    }
    await Promise.all([lane(), lane()])
    assert.equal(world.ctx.codeRuntime.language, language)
    assert.equal(world.ctx.codeRuntime.isolation, 'process')
  })

  test(
    `a program in ${language} that computes on and on is ended, whatever it waits for beside`,
    options,
    async () => {
      await using world = await setup({ language, cpuSeconds: 1 })
      const loop = language === 'python' ? 'tools.late()\nwhile True: pass' : 'tools.late(); for (;;);'
      const error = { kind: 'timeout', message: 'the program used more than 1 s of processor time' }
      assert.deepEqual(await world.run(loop), { logs: [], error })
    },
  )

  test(`deep values go both ways in ${language}`, options, async () => {
    await using world = await setup({ language })
    const build =
      language === 'python'
        ? 'a = []\nfor i in range(20000): a = [a]\nawait tools.echo({"a": a})\nreturn a'
        : 'let a = []; for (let i = 0; i < 20000; i++) a = [a]; const { a: b } = await tools.echo({ a }); return b'
    const { value, error } = await world.run(build)
    let deep: JsonValue = []
    for (let level = 0; level < 20_000; level++) deep = [deep]
    assert.ok(jsonEquals(world.asked[0], { a: deep }))
    // Python's own reader of JSON stops at some depth: what it cannot read is an error of the call.
    if (language === 'python')
      assert.match(error?.message ?? '', /^ToolCallError: the answer is nested too deeply for Python/)
    else assert.ok(jsonEquals(value, deep))
  })
}

test('a program that waits for a slow call uses no time of its own', async () => {
  await using world = await setup({ cpuSeconds: 1 })
  const running = world.run('return await tools.late()')
  await until(() => world.asked.length > 0)
  world.late.resolve('at last')
  assert.deepEqual(await running, { value: 'at last', logs: [] })
})

test('a program ends when its time on the clock is over, and when its caller gives up', async () => {
  await using world = await setup({ maxWallMs: 400 })
  assert.deepEqual(await world.run('console.log("a"); await tools.late()'), {
    logs: ['a'],
    error: { kind: 'timeout', message: 'the program ran for 0.4 s' },
  })
  await using patient = await setup()
  const caller = new AbortController()
  const running = patient.run('console.log("a"); await tools.late()', { signal: caller.signal })
  await until(() => patient.asked.length > 0)
  caller.abort()
  const error = { kind: 'abort', message: 'the program was cancelled' }
  assert.deepEqual(await running, { logs: ['a'], error })
  assert.deepEqual(await patient.run('return 1', { signal: caller.signal }), { logs: [], error })
})

test('output over the limit is cut before the first that does not fit', async () => {
  // [] and "aaaa" and , and "bb" are 13 bytes.
  for (const [maxOutputBytes, program, expected] of [
    [13, 'console.log("aaaa"); console.log("bb")', { logs: ['aaaa', 'bb'] }],
    [14, 'console.log("aaaa"); return 123', { logs: ['aaaa'], value: 123 }],
    [
      12,
      'console.log("aaaa"); console.log("bb")',
      failure('output-limit', 'the program gave more than 12 bytes of output', ['aaaa']),
    ],
    [
      10,
      'console.log("aaaa"); return 123',
      failure('output-limit', 'the program gave more than 10 bytes of output', ['aaaa']),
    ],
    [10, 'throw "x".repeat(9)', failure('output-limit', 'the program gave more than 10 bytes of output')],
    [
      1000,
      'for (;;) console.log("x".repeat(100))',
      failure(
        'output-limit',
        'the program gave more than 1000 bytes of output',
        Array(9).fill('x'.repeat(100)),
      ),
    ],
    [
      1000,
      'require("fs").writeSync(1, "x".repeat(100000)); await tools.late()',
      failure('output-limit', 'the program gave more than 1000 bytes of output'),
    ],
  ] as const) {
    await using world = await setup({ maxOutputBytes })
    assertResult(await world.run(program), expected, program)
  }
})

test('calls without end, and answers that nobody reads, end the program and not the harness', async () => {
  for (const [program, message] of [
    ['for (;;) tools.late()', 'the program had 10000 calls open; wait for some of them'],
    ['for (;;) await tools.echo(1)', 'the program made more than 20000 calls'],
    [
      'for (let i = 0; i < 50; i++) tools.echo("x".repeat(100000)); for (;;);',
      'the program left more than 200000 bytes of answers unread',
    ],
  ] as const) {
    await using world = await setup({ maxOutputBytes: 200_000 })
    assertResult(await world.run(program), failure('output-limit', message), program)
  }
  await using world = await setup()
  const all = await world.run('return (await Promise.all(Array(9000).fill(1).map(tools.echo))).length')
  assertResult(all, { value: 9000, logs: [] }, 'as many as that')
})

test('more memory than allowed ends the program alone', async () => {
  await using world = await setup({ memoryMb: 64 })
  const heap = await world.run('const a = []; for (;;) a.push(Array(1000).fill(1.5))')
  assert.deepEqual(heap, failure('worker-exit', 'the program used more than 64 MiB of memory'))
  const buffers = await world.run('const a = []; for (;;) a.push(Buffer.alloc(1e8, 1))')
  assert.match(buffers.error?.message ?? '', /allocat/i)
})

test('a process that says what it likes gains nothing', async () => {
  await using world = await setup()
  // Knows the mark, and so can speak as the program's own process does.
  const forger = `
    const { writeSync } = require('node:fs')
    let answers = ''
    process.stdin.once('data', chunk => {
      const { mark } = JSON.parse(String(chunk).split('\\n')[0])
      const say = frame => writeSync(1, mark + JSON.stringify(frame) + '\\n')
      const call = { type: 'call', global: 'tools', name: 'echo' }
      process.stdin.on('data', more => {
        answers += more
        if (answers.trim().split('\\n').length < 5) return
        say({ type: 'done', value: answers.trim().split('\\n').map(JSON.parse).sort((a, b) => a.id - b.id) })
        say({ type: 'done', value: 'again' })
        say({ type: 'log', text: 'too late' })
        say({ ...call, id: 9, args: 'too late' })
      })
      say({ ...call, id: 1, args: 'one' })
      say({ ...call, id: 1, args: 'one again' })
      say({ ...call, id: 2, name: 'toString', args: 0 })
      say({ ...call, id: 3, global: 'process', args: 0 })
      writeSync(1, mark + '{"type":"call","id":4,"global":"tools","name":"echo","args":-0}\\n')
      say({ ...call, id: -5, args: 'no id' })
      say({ type: 'exec', command: 'true' })
      writeSync(1, mark + '{"type":"done"\\n')
      writeSync(1, 'before' + mark + JSON.stringify({ type: 'log', text: 'logged' }) + '\\n')
      say({ ...call, id: 5, name: 'fail', args: 0 })
    })
    setTimeout(() => {}, 20000)`
  const echo = async (args: JsonValue): Promise<JsonValue> => (world.asked.push(args), args)
  const fail = async (): Promise<never> => Promise.reject(new Error('no luck'))
  const run = new ProgramRun(world.ctx.subprocess, {
    argv: [process.execPath, '-e', forger],
    cwd: '/',
    confined: undefined,
    source: '',
    bindings: readBindings([{ global: 'tools', functions: { echo, fail } }]),
    hasBigIntegers: false,
    limits: { cpuSeconds: 60, maxWallMs: 30_000, maxOutputBytes: 10_000, memoryMb: 512 },
    signal: AbortSignal.timeout(30_000),
  })
  const reply = (id: number, message: string) => ({ type: 'reply', id, ok: false, message })
  assert.deepEqual(await run.run(), {
    value: [
      { type: 'reply', id: 1, ok: true, value: 'one' },
      reply(2, 'there is no tools.toString'),
      reply(3, 'there is no process.echo'),
      reply(4, 'JSON does not keep these arguments'),
      reply(5, 'no luck'),
    ],
    logs: ['before', 'logged'],
  })
  assert.deepEqual(world.asked, ['one'])
})

test('runs know nothing of each other, and end with the service', async () => {
  await using world = await setup()
  assert.deepEqual(await world.run('globalThis.left = 1'), { logs: [] })
  assert.deepEqual(await world.run('return typeof left'), { value: 'undefined', logs: [] })
  const { codeRuntime: service } = world.ctx
  const running = world.run('await tools.late()')
  await until(() => world.asked.length > 0)
  await world.ctx.dispose()
  assert.equal((await running).error?.kind, 'abort')
  await assert.rejects(service.run({ program: '', bindings: [] }), { code: 'CODE_RUNTIME_CLOSED' })
})

test('without python3 the runtime says so', async () => {
  const ctx = new Context()
  await ctx.plugin(subprocess, { env: { PATH: '/nowhere' } })
  await ctx.plugin(localCodeRuntime, { language: 'python' })
  const result = await ctx.codeRuntime.run({ program: 'return 1', bindings: [], policy: open })
  assert.deepEqual(result, failure('worker-exit', 'no program "python3"'))
  await ctx.dispose()
})

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isSo()) {
    assert.ok(performance.now() < deadline, 'it never came')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
