import { textOf } from '@dsh/protocol'
import type { Message, ToolCallBlock } from '@dsh/protocol'

/** What the demo model says next, and the calls it makes with it. */
export interface DemoAnswer {
  readonly text: string
  readonly calls: readonly DemoCall[]
}

interface DemoCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, string>>
}

/** A call since the last prompt, with what came back. */
interface Done extends DemoCall {
  readonly result: string
  readonly isError: boolean
}

const sampleName = 'dsh-sample-workspace'
const source = 'src/stats.js'
const bug = '[...values].sort()'
const fix = '[...values].sort((a, b) => a - b)'

const say = {
  look: 'I am the demo model of dsh: I follow a script, the tools are real. First a look at the folder.',
  manifest: 'A Node project. I read its manifest.',
  test: 'I run the tests to see what fails.',
  read: 'One test fails. I read the code it tests.',
  edit: '`sort()` without a comparison sorts numbers as text, so 10 comes before 2. I compare them as numbers.',
  again: 'I run the tests again.',
} as const

const key = [
  'To work with a real model, set the key of a provider and start a new session:',
  '',
  "  export DEEPSEEK_API_KEY='…'",
  '',
  '`dsh models` lists the providers and their variables.',
].join('\n')

/**
 * The next step of the script, from the messages alone: whoever resumes a session goes on where it stopped.
 *
 * In the sample workspace it finds and fixes the bug; anywhere else it takes one look and says how to get a model.
 */
export function nextAnswer(messages: readonly Message[], tools: ReadonlySet<string>): DemoAnswer {
  const done = callsSinceLastPrompt(messages)
  const listing = find(done, 'read', '.')
  if (listing === undefined)
    return tools.has('read') ? call(say.look, 'read', { file_path: '.' }) : final(elsewhere())
  if (!listing.result.includes('package.json')) return final(elsewhere(listing))

  const manifest = find(done, 'read', 'package.json')
  if (manifest === undefined) return call(say.manifest, 'read', { file_path: 'package.json' })
  const isSample = manifest.result.includes(sampleName)
  return isSample && tools.has('bash') && tools.has('edit') ? nextOfRepair(done) : final(elsewhere(listing))
}

function nextOfRepair(done: readonly Done[]): DemoAnswer {
  const [before, after] = done.filter(({ name }) => name === 'bash')
  if (before === undefined) return call(say.test, 'bash', runTests)
  if (before.isError) return final(`The tests could not be run: ${before.result}`)
  if (hasPassed(before)) return final(`There is nothing to fix: ${counts(before)}.\n\n${key}`)

  const code = find(done, 'read', source)
  if (code === undefined) return call(say.read, 'read', { file_path: source })
  const edit = find(done, 'edit', source)
  if (edit === undefined) {
    if (!code.result.includes(bug))
      return final(`The tests fail (${counts(before)}), and not of the bug in my script.`)
    return call(say.edit, 'edit', { file_path: source, old_string: bug, new_string: fix })
  }
  if (edit.isError) return final(`I found the bug in ${source}, but could not fix it: ${edit.result}`)

  if (after === undefined) return call(say.again, 'bash', runTests)
  if (after.isError) return final(`I fixed ${source}, but the tests could not be run again: ${after.result}`)
  if (!hasPassed(after)) return final(`I changed ${source}, but the tests still fail: ${counts(after)}.`)
  return final(
    [
      `Fixed: \`median\` in ${source} sorted numbers as text. Before: ${counts(before)}. Now: ${counts(after)}.`,
      'I am the demo model: the script was written before, the commands and the edit really ran.',
      key,
    ].join('\n\n'),
  )
}

const runTests = { command: 'node --test --test-reporter=tap', description: 'Run the tests' } as const

function elsewhere(listing?: Done): string {
  const looked =
    listing === undefined || listing.isError
      ? 'I cannot work on your task'
      : 'I looked at the folder, but I cannot work on your task'
  return `I am the demo model of dsh, which answers while no key is set. ${looked}.\n\n${key}`
}

function final(text: string): DemoAnswer {
  return { text, calls: [] }
}

function call(text: string, name: string, args: DemoCall['arguments']): DemoAnswer {
  return { text, calls: [{ name, arguments: args }] }
}

function find(done: readonly Done[], name: string, path: string): Done | undefined {
  return done.find(one => one.name === name && one.arguments.file_path === path)
}

/** By the summary of Node's test runner, whichever reporter wrote it. */
function hasPassed(run: Done): boolean {
  return count(run, 'fail') === '0'
}

function counts(run: Done): string {
  return `${count(run, 'pass') ?? '?'} of ${count(run, 'tests') ?? '?'} tests pass`
}

function count(run: Done, what: string): string | undefined {
  return new RegExp(`^(?:#|ℹ) ${what} (\\d+)$`, 'm').exec(run.result)?.[1]
}

function callsSinceLastPrompt(messages: readonly Message[]): Done[] {
  const prompt = messages.findLastIndex(({ source: { kind } }) => kind === 'user')
  const calls = new Map<string, ToolCallBlock>()
  const done: Done[] = []
  for (const block of messages.slice(prompt + 1).flatMap(({ content }) => content)) {
    if (block.type === 'tool-call') calls.set(block.id, block)
    if (block.type !== 'tool-result') continue
    const made = calls.get(block.toolCallId)
    if (made === undefined) continue
    const result = textOf(block.content)
    done.push({ name: made.name, arguments: argumentsOf(made), result, isError: block.isError === true })
  }
  return done
}

/** The script makes flat objects of text; arguments of another model may be anything, and then fit no step. */
function argumentsOf(made: ToolCallBlock): DemoCall['arguments'] {
  try {
    const value: unknown = JSON.parse(made.arguments)
    return typeof value === 'object' && value !== null ? (value as DemoCall['arguments']) : {}
  } catch {
    return {}
  }
}
