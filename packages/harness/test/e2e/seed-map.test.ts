import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { problemsOf } from './seed-map.ts'
import { readSource, readSourceTree } from './source-tree.ts'

const root = new URL('../../../../', import.meta.url).pathname
const map = readFileSync(`${root}docs/reference/seed-map.md`, 'utf8')
const sources = readSourceTree(root)
const repository = {
  root,
  sources,
  load: (specifier: string) => import(specifier) as Promise<Record<string, unknown>>,
}

/** The problems of the map with `from` written as `to`, without their lines. */
async function problemsWith(from: string, to: string): Promise<string[]> {
  assert.ok(map.includes(from), `the map does not say ${from}`)
  const problems = await problemsOf(map.replace(from, to), repository)
  return problems.map(problem => problem.replace(/^line \d+: /, ''))
}

test('the seed map names everything as it is, and nothing that is not', async () => {
  assert.deepEqual(await problemsOf(map, repository), [])
})

test('a service, an event or a class that moved is found', async () => {
  assert.deepEqual(
    await problemsWith(
      '| `ToolRuntime` | `core/tools/runtime.ts` |',
      '| `Tools` | `core/tools/runtime.ts` |',
    ),
    ['ctx.tools is a ToolRuntime'],
  )
  assert.deepEqual(await problemsWith('| `turn/start` | `packages/', '| `turn/begin` | `packages/'), [
    '"turn/begin" is not declared',
    '"turn/start" of packages/protocol/src/events.ts has no row under "Events in the log"',
  ])
  assert.deepEqual(await problemsWith('| `agent/created` | veto |', '| `agent/created` | emit |'), [
    '"agent/created" is dispatched as veto',
  ])
  assert.deepEqual(
    await problemsWith(
      '| `defineTool` | `core/tools/define.ts` |',
      '| `defineTool` | `core/tools/tool.ts` |',
    ),
    ['packages/harness/src/core/tools/tool.ts does not export defineTool'],
  )
  assert.deepEqual(await problemsWith('`.followup`, `.steer`', '`.followUp`, `.steer`'), [
    'Agent has no followUp',
  ])
  assert.deepEqual(
    await problemsWith(
      '`UNKNOWN_TOOL`, `INVALID_ARGS`, `INVALID_TOOL_OUTPUT`, `ABORTED_BEFORE_DISPATCH` | `core',
      '`NO_TOOL` | `core',
    ),
    ['packages/harness/src/core/tools/errors.ts does not name NO_TOOL'],
  )
})

test('what is inside a folder is not given as its public name', async () => {
  assert.deepEqual(await problemsWith('### Inside', '### Insides'), [
    '@dsh/harness/loop does not export LoopAgent',
    '@dsh/harness/loop does not export Driver',
    '@dsh/harness/loop does not export RequestBuilder',
    '@dsh/harness/loop does not export runToolCalls',
    '@dsh/harness/session does not export branchAt',
    '@dsh/harness/session does not export coreChecks',
    '@dsh/harness/session does not export Delivery',
    '@dsh/harness/commands does not export toCommandResult',
  ])
})

test('what comes later or is left out must not be there', async () => {
  assert.deepEqual(
    await problemsWith('| `ctx.lsp` | comes later: `lsp` |', '| `ctx.bash` | comes later: `bash` |'),
    ['"bash" is there: say what it is', 'bash is there: say what it brings'],
  )
  assert.deepEqual(await problemsWith('| `assistant/attempt` | not here', '| `LlmError` | not here'), [
    '"LlmError" is there: say what it is',
  ])
})

test('a package, a path or an event without a counterpart is found', async () => {
  assert.deepEqual(
    await problemsWith(
      '| `core/scope` | `@dsh/harness/scope` |',
      '| `core/scopes` | `@dsh/harness/scopes` |',
    ),
    ['core/scopes is not there', '@dsh/harness/scopes cannot be imported'],
  )
  assert.deepEqual(await problemsWith('`kernel/loader/interpolate.ts`', '`kernel/loader/eval.ts`'), [
    'kernel/loader/eval.ts is not there',
  ])
  const path = 'packages/harness/src/plugins/retry/events.ts'
  const text = `declare module '@dsh/protocol' { interface SessionEventMap { 'llm/gave-up': { readonly turn: number } } }`
  const more = new Map([...sources, [`${path}x`, readSource(text, path)]])
  assert.deepEqual(await problemsOf(map, { ...repository, sources: more }), [
    `"llm/gave-up" of ${path}x has no row under "Events in the log"`,
  ])
})
