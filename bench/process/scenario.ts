import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reply } from '@dsh/harness/testing'
import type { ChatBody, MockCall, MockReply } from '@dsh/harness/testing'

/** What a model asks for in one answer; whichever tool of the program does that. */
type Wanted = { readonly shell: string } | { readonly read: string }

/** A run: the answers of the model that hold calls, and the last one, which is text. */
export interface Scenario {
  readonly about: string
  readonly steps: readonly (readonly Wanted[])[]
  readonly final: string
}

const fileCount = 200
const fileName = (index: number): string => `f${String(index).padStart(3, '0')}.txt`
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index + 1))

export const scenarios: Readonly<Record<string, Scenario>> = {
  answer: { about: 'one plain answer', steps: [], final: 'The answer is 42.' },
  shells: {
    about: '50 shell calls, one after another',
    steps: times(50, index => [{ shell: `true ${index}` }]),
    final: 'done',
  },
  reads: {
    about: '200 reads of a 4 KB file, one after another',
    steps: times(fileCount, index => [{ read: fileName(index) }]),
    final: 'done',
  },
  parallel: {
    about: '8 reads in one answer',
    steps: [times(8, index => ({ read: fileName(index) }))],
    final: 'done',
  },
  deltas: {
    about: 'one answer of 5,000 deltas',
    steps: [],
    final: times(5000, index => `w${index}`).join(' '),
  },
}

/** An empty folder with the files that are read: 64 lines of 64 bytes each. */
export function makeWorkspace(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const index of times(fileCount, number => number)) {
    const lines = times(64, line => `file ${index} line ${line} `.padEnd(63, 'abcdefghij '))
    writeFileSync(join(folder, fileName(index)), `${lines.join('\n')}\n`)
  }
}

/** The answer to request number `step`, from 0, in the words of the tools that the request offers. */
export function answerOf(
  scenario: Scenario,
  step: number,
  { tools = [] }: ChatBody,
  folder: string,
): MockReply {
  const wanted = scenario.steps[step]
  if (wanted === undefined) return reply.text(scenario.final)
  return inOneWrite(wanted.map((want, index) => toCall(want, `call_${step}_${index}`, tools, folder)))
}

type Tools = NonNullable<ChatBody['tools']>

const kinds = {
  shell: { tool: /bash|shell|exec|command|terminal/i, argument: /^(command|cmd|script)$/ },
  read: { tool: /^read|^view|_read$/i, argument: /^(file_?path|path|file|filename)$/i },
}

function toCall(want: Wanted, id: string, tools: Tools, folder: string): Required<MockCall> {
  const kind = 'shell' in want ? kinds.shell : kinds.read
  const tool = tools.find(({ function: { name } }) => kind.tool.test(name))?.function
  if (tool === undefined) throw new Error(`no tool fits ${kind.tool}`)
  const { properties = {}, required = [] } = tool.parameters as {
    readonly properties?: Readonly<Record<string, unknown>>
    readonly required?: readonly string[]
  }
  const key = Object.keys(properties).find(name => kind.argument.test(name))
  if (key === undefined) throw new Error(`tool ${tool.name} has no argument ${kind.argument}`)
  const others = required.filter(name => name !== key).map(name => [name, 'bench'])
  const value = 'shell' in want ? want.shell : join(folder, want.read)
  return { name: tool.name, id, arguments: { ...Object.fromEntries(others), [key]: value } }
}

/** An answer with calls that leaves the provider in one piece: what is measured is what comes after it. */
function inOneWrite(calls: readonly Required<MockCall>[]): MockReply {
  const base = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 0, model: 'bench' }
  const chunk = (delta: object, finish_reason: string | null = null): object => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  })
  const usage = { prompt_tokens: 1000, completion_tokens: 20, total_tokens: 1020 }
  const fragments = calls.map(({ id, name, arguments: args }, index) =>
    chunk({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
    }),
  )
  const events = [
    chunk({ role: 'assistant', content: '' }),
    ...fragments,
    chunk({}, 'tool_calls'),
    { ...base, choices: [], usage },
  ]
  const lines = events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
  return reply.sse([`${lines}data: [DONE]\n\n`], { done: false })
}
