import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { Output } from './io.ts'

function setup(fails: () => Error | undefined = () => undefined) {
  const writes: string[] = []
  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      const error = fails()
      if (error === undefined) writes.push(text)
      done(error)
    },
  })
  return { out: new Output(stream), writes }
}

test('what is written in one turn of the loop leaves in one piece, in order', async () => {
  const { out, writes } = setup()
  for (const word of ['a', 'b', 'c']) out.line(word)
  assert.deepEqual(writes, [])
  await new Promise(resolve => setImmediate(resolve))
  out.write('d')
  await out.flush()
  assert.deepEqual(writes, ['a\nb\nc\n', 'd'])
})

test('a reader that went away is told once and fails nobody', async () => {
  const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
  const { out, writes } = setup(() => gone)
  let told = 0
  out.onFailure(() => told++)
  out.line('a')
  await out.flush()
  out.line('b')
  await out.flush()
  assert.deepEqual([out.failure, told, writes], [gone, 1, []])
})
