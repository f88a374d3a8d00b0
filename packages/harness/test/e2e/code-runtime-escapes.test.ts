import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:http'
import net from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { localCodeRuntime } from '../../src/plugins/code-runtime/index.ts'
import type { CodeLanguage } from '../../src/plugins/code-runtime/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import type { SandboxExecutionPolicy } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'
import { skipWithoutBwrap } from './bwrap.ts'
import { readTables } from './markdown-tables.ts'
import { skipWithoutPython } from './python.ts'

const page = fs.readFileSync(
  new URL('../../../../docs/reference/code-runtime-escapes.md', import.meta.url),
  'utf8',
)
const limits = { skip: skipWithoutBwrap(), timeout: 100_000 }

const everything: Omit<SandboxExecutionPolicy, 'workspaceRoot'> = {
  mode: 'full-access',
  network: true,
  writableRoots: [],
  protectedPaths: [],
  unreadablePaths: [],
  readablePaths: [],
}

/** What a program is told of the world around it. */
interface Around {
  readonly dir: string
  readonly outside: string
  readonly home: string
  readonly pid: number
  readonly port: number
  readonly socket: string
  readonly agent: string
  readonly abstractSocket: string
}

/** Each throws, or gives what it reached; nothing stands for nothing that was there. */
const attempts: Readonly<Record<CodeLanguage, Readonly<Record<string, string>>>> = {
  typescript: {
    'the process by `constructor.constructor` of a function of the host':
      'return tools.echo.constructor.constructor("return process")().getBuiltinModule("node:fs").readFileSync("/etc/hostname", "utf8")',
    'the process by the error of a failed call':
      'let e; try { await tools.fail() } catch (error) { e = error }\nreturn e.constructor.constructor("return process")().getBuiltinModule("node:fs").readFileSync("/etc/hostname", "utf8")',
    "read a file with `import('node:fs')`":
      'return (await import("node:fs")).readFileSync(around.outside + "/secret", "utf8")',
    'list a folder': 'return (await import("node:fs/promises")).readdir(around.dir)',
    'write a file of the workspace':
      'require("fs").writeFileSync(around.dir + "/made", "x"); return "written"',
    'import a module of the workspace': 'return Object.keys(await import(around.dir + "/module.mjs"))',
    'the bindings of Node': 'return Object.keys(process.binding("fs")).length',
    'start a process':
      'const { error } = require("child_process").spawnSync("/bin/true"); if (error) throw error; return "ran"',
    'become another program with `process.execve`': 'process.execve("/bin/true", ["true"], {})',
    'load a library with `process.dlopen`':
      'process.dlopen({ exports: {} }, "/lib/x86_64-linux-gnu/libm.so.6"); return "loaded"',
    'start a worker': 'new (require("worker_threads").Worker)("1", { eval: true }); return "started"',
    'open the inspector': 'require("inspector").open(0); return "open"',
    'files by WASI':
      'new (require("wasi").WASI)({ version: "preview1", preopens: { "/": "/" } }); return "open"',
    'files by SQLite':
      'const { DatabaseSync } = require("node:sqlite"); new DatabaseSync(around.dir + "/made"); return "open"',
    'write a heap snapshot': 'return require("v8").writeHeapSnapshot(around.dir + "/made")',
    'the environment': 'return Object.keys({ ...process.env }).join() || null',
    'the environment of the harness in `/proc`':
      'return require("fs").readFileSync(`/proc/${around.pid}/environ`, "utf8")',
    'signal the harness': 'process.kill(around.pid, 0); return "there"',
    'fetch from a server of this machine':
      'try { return await (await fetch(`http://127.0.0.1:${around.port}/`)).text() } catch (e) { throw e.cause }',
    'connect to a socket in the file system':
      'return await new Promise((yes, no) => require("net").connect(around.socket).on("error", no).on("data", d => yes(String(d))))',
    'connect a socket that was made by the constructor of another':
      'const { Socket } = await import("node:net"); new (new Socket().constructor)().connect(around.port); return "connecting"',
    'send a datagram':
      'require("dgram").createSocket("udp4").send("x", around.port, "127.0.0.1"); return "sent"',
    'listen on a socket in the workspace':
      'return await new Promise((yes, no) => require("net").createServer().on("error", no).listen(around.dir + "/made", () => yes("open")))',
    'the pipe to the harness': 'return process.stdin ?? null',
  },
  python: {
    'read a file that commands may read': 'return open(around["outside"] + "/secret").read()',
    'read the folder of keys and logs': 'return open(around["home"] + "/key").read()',
    'write a file of the workspace': 'open(around["dir"] + "/made", "w")\nreturn "written"',
    'write a file outside': 'open(around["outside"] + "/made", "w")\nreturn "written"',
    'a process that lives on':
      'import subprocess\nsubprocess.Popen(["/bin/sleep", "987654"], start_new_session=True)\nreturn "started"',
    'the environment': 'import os\nreturn ",".join(os.environ) or None',
    'the environment of the harness in `/proc`': 'return open("/proc/%d/environ" % around["pid"]).read()',
    'signal the harness': 'import os\nos.kill(around["pid"], 0)\nreturn "there"',
    'trace the harness with `ptrace`':
      'import ctypes\nif ctypes.CDLL(None, use_errno=True).ptrace(16, around["pid"], 0, 0) != 0: raise Exception("refused")\nreturn "traced"',
    'connect to a server of this machine':
      'import socket\nsocket.create_connection(("127.0.0.1", around["port"]), 5)\nreturn "connected"',
    'connect to the socket of an agent that holds keys':
      'import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(around["agent"])\nreturn "connected"',
    'connect to a socket in a folder that commands may read':
      'import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(around["socket"])\nreturn "connected"',
    'connect to an abstract socket':
      'import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect("\\0" + around["abstractSocket"])\nreturn "connected"',
  },
}

async function setup(language: CodeLanguage, { isConfined }: { readonly isConfined: boolean }) {
  // Below /tmp a confined process has a folder of its own.
  const outside = fs.realpathSync(fs.mkdtempSync('/var/tmp/dsh-escape-'))
  const dir = join(outside, 'work')
  const home = join(outside, 'home')
  for (const folder of [dir, home]) fs.mkdirSync(folder)
  fs.writeFileSync(join(outside, 'secret'), 'secret')
  fs.writeFileSync(join(home, 'key'), 'key')
  fs.writeFileSync(join(dir, 'module.mjs'), 'export const a = 1')
  const socket = join(outside, 'socket')
  const keys = join(outside, 'agent')
  const abstractSocket = `dsh-escape-${randomUUID()}`
  const web = createServer((_, response) => response.end('reached'))
  const answer = (connection: net.Socket): unknown => connection.on('error', () => {}).end('reached')
  const local = net.createServer(answer)
  const agentOfKeys = net.createServer(answer)
  const abstract = net.createServer(answer)
  web.listen(0, '127.0.0.1')
  local.listen(socket)
  agentOfKeys.listen(keys)
  abstract.listen(`\0${abstractSocket}`)
  await Promise.all([web, local, agentOfKeys, abstract].map(server => once(server, 'listening')))
  // Long there, as servers are.
  for (const path of [socket, keys]) fs.utimesSync(path, 0, 0)
  const { port } = web.address() as AddressInfo
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess)
  if (isConfined) await ctx.plugin(sandbox, { mode: 'workspace-write', home, env: { SSH_AUTH_SOCK: keys } })
  await ctx.plugin(localCodeRuntime, { language })
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  const around: Around = { dir, outside, home, pid: process.pid, port, socket, agent: keys, abstractSocket }
  const policy = isConfined
    ? await ctx.sandboxPolicy.resolve({ session: agent.session })
    : { ...everything, workspaceRoot: dir }
  const attempt = async (program: string): Promise<string> => {
    const fail = async (): Promise<never> => Promise.reject(new Error('no luck'))
    const functions = { echo: async (args: JsonValue) => args, fail }
    const bindings = [
      { global: 'tools', functions, errorClass: { name: 'ToolCallError', memberNameProperty: 'toolName' } },
    ]
    const known = JSON.stringify(JSON.stringify(around))
    const lead =
      language === 'python'
        ? `import json\naround = json.loads(${known})\n`
        : `const around = JSON.parse(${known});`
    const told = await ctx.codeRuntime.run({
      program: guarded(language, lead, program),
      bindings,
      policy,
      signal: AbortSignal.timeout(30_000),
    })
    assert.ok(told.error === undefined, JSON.stringify(told))
    const { code, value } = told.value as { code?: string; value?: JsonValue }
    if (code !== undefined) return code
    return value === null ? 'nothing there' : 'reached'
  }
  return {
    ctx,
    dir,
    attempt,
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      for (const server of [web, local, agentOfKeys, abstract]) server.close()
      fs.rmSync(outside, { recursive: true, force: true })
    },
  }
}

/** Tells what was thrown by its code, so that nothing hangs on the words of a message. */
function guarded(language: CodeLanguage, lead: string, program: string): string {
  if (language === 'typescript')
    return `${lead} try { return { value: await (async () => { ${program} })() } } catch (e) { return { code: e.code ?? e.message } }`
  const body = program.replaceAll(/^/gm, '    ')
  return `${lead}async def attempt():\n${body}\ntry:\n    return {"value": await attempt()}\nexcept OSError as e:\n    return {"code": "OSError %d" % e.errno if type(e) is OSError else type(e).__name__}\nexcept Exception as e:\n    return {"code": str(e)}`
}

function expected(section: string): Map<string, Readonly<Record<string, string>>> {
  const rows = readTables(page).filter(row => row.section === section)
  return new Map(rows.map(({ cells }) => [cells['Attempt'] ?? '', cells]))
}

function plain(cell = ''): string {
  return cell.replaceAll('`', '')
}

test('the page of escapes says what came of each attempt in TypeScript', limits, async () => {
  await using world = await setup('typescript', { isConfined: true })
  await using alone = await setup('typescript', { isConfined: false })
  const rows = expected('Programs in TypeScript')
  assert.deepEqual([...rows.keys()], Object.keys(attempts.typescript))
  for (const [name, program] of Object.entries(attempts.typescript)) {
    const cells = rows.get(name) ?? {}
    assert.equal(await world.attempt(program), plain(cells['In the sandbox']), name)
    assert.equal(await alone.attempt(program), plain(cells['Without one']), `${name}, without a sandbox`)
    assert.deepEqual(fs.readdirSync(world.dir), ['module.mjs'], name)
  }
})

const skipPython = limits.skip || skipWithoutPython()

test(
  'the page of escapes says what came of each attempt in Python',
  { ...limits, skip: skipPython },
  async () => {
    await using world = await setup('python', { isConfined: true })
    const rows = expected('Programs in Python')
    assert.deepEqual([...rows.keys()], Object.keys(attempts.python))
    for (const [name, program] of Object.entries(attempts.python)) {
      const came = await world.attempt(program)
      const result = name === 'a process that lives on' && !isRunning('987654') ? 'gone' : came
      assert.equal(result, plain(rows.get(name)?.['In the sandbox']), name)
      assert.deepEqual(fs.readdirSync(world.dir), ['module.mjs'], name)
    }
  },
)

function isRunning(argument: string): boolean {
  return fs.readdirSync('/proc').some(name => {
    try {
      return fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes(argument)
    } catch {
      return false
    }
  })
}
