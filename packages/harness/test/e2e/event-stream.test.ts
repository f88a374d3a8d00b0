import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { before, test } from 'node:test'

const example = join(import.meta.dirname, '../../../../examples/event-stream.ts')

/** The types of each run's events, in order, with a count behind those that come in a row. */
const runs = new Map<string, string[]>()
const lines = new Map<string, string[]>()

before(() => {
  const output = execFileSync(process.execPath, ['--conditions=dsh-source', example], { encoding: 'utf8' })
  let name = ''
  for (const line of output.trimEnd().split('\n')) {
    const title = /^=== (\w): /.exec(line)
    if (title !== null) {
      name = title[1] ?? ''
      runs.set(name, [])
      lines.set(name, [])
      continue
    }
    const [type = ''] = line.split(' ')
    lines.get(name)?.push(line)
    if (runs.get(name)?.at(-1) !== type) runs.get(name)?.push(type)
  }
})

const begin = [
  'turn/start',
  'agent/inbox/spliced',
  'step/start',
  'user/message',
  'request/header',
  'request/context',
]
const answer = ['assistant/chunk', 'assistant/message']
const end = ['step/end', 'turn/end']

test('there are five runs, each begun by a line that names it', () => {
  assert.deepEqual([...runs.keys()], ['A', 'B', 'C', 'D', 'E'])
})

test('a followup is a turn of one step', () => {
  assert.deepEqual(runs.get('A'), ['agent/inbox/spliced', ...begin, ...answer, ...end])
  assert.equal(lines.get('A')?.length, 29)
  assert.match(lines.get('A')?.at(-1) ?? '', /"kind":"completed"/)
})

test('a tool call and its result stand in the first step, and a second one follows', () => {
  const second = ['step/end', 'step/start', ...answer, ...end]
  assert.deepEqual(runs.get('B'), [
    'agent/inbox/spliced',
    ...begin,
    ...answer,
    'tool/call',
    'tool/result',
    ...second,
  ])
  assert.match(lines.get('B')?.find(line => line.startsWith('tool/result')) ?? '', /Hello, Rex!/)
})

test('steering an idle agent runs the same turn as a followup', () => {
  assert.deepEqual(runs.get('C'), runs.get('A'))
  assert.match(lines.get('C')?.[0] ?? '', /"target":"next-step"/)
})

test('a cancelled turn keeps what was on the screen', () => {
  assert.deepEqual(runs.get('D'), ['agent/inbox/spliced', ...begin, ...answer, ...end])
  const message = lines.get('D')?.find(line => line.startsWith('assistant/message')) ?? ''
  assert.match(message, /"text":"partial"/)
  assert.match(message, /"interrupted":true/)
  assert.match(lines.get('D')?.at(-1) ?? '', /"kind":"aborted","reason":\{"kind":"user"\}/)
})

test('a slash command is a pair of events and no turn', () => {
  assert.deepEqual(runs.get('E'), ['command/run', 'command/done'])
  assert.match(lines.get('E')?.[0] ?? '', /"name":"ping","args":" hello"/)
})
