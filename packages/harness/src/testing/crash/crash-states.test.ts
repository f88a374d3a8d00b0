import assert from 'node:assert/strict'
import { test } from 'node:test'
import { killStates, losePower, powerLossStates } from './crash-states.ts'
import { filesOf } from './disk.ts'
import { ModelFileSystem } from './model-file-system.ts'
import { randomOf } from './random.ts'

/** Every outcome that hundreds of power failures have, as `path=text` lists. */
function outcomes(fs: ModelFileSystem): ReadonlySet<string> {
  const random = randomOf('outcomes')
  const seen = new Set<string>()
  for (let round = 0; round < 400; round += 1) {
    const files = [...filesOf(losePower(fs.disk, random).disk)]
    seen.add(
      files
        .map(([path, bytes]) => `${path}=${bytes.toString('latin1').replaceAll('\0', '0')}`)
        .toSorted()
        .join(),
    )
  }
  return seen
}

async function withFile(text: string): Promise<ModelFileSystem> {
  const fs = new ModelFileSystem()
  const file = await fs.open('/a', 'create')
  await file.write(Buffer.from(text))
  await file.sync()
  await fs.syncFolder('/')
  return new ModelFileSystem(fs.disk)
}

test('what was synced survives every power failure', async () => {
  assert.deepEqual(outcomes(await withFile('kept')), new Set(['/a=kept']))
})

test('bytes that were not synced may be there, gone, cut, zero or garbage; those before them stay', async () => {
  const fs = await withFile('kept')
  await (await fs.open('/a', 'append')).write(Buffer.from('new'))
  const seen = outcomes(fs)
  for (const outcome of ['/a=kept', '/a=keptnew', '/a=keptn', '/a=kept000'])
    assert.ok(seen.has(outcome), outcome)
  assert.ok([...seen].every(outcome => outcome.startsWith('/a=kept')))
  assert.ok(seen.size > 20, 'garbage has many faces')
})

test('a file that was cut and not synced may be whole again, and one that grew after it may mix both', async () => {
  const fs = await withFile('kept')
  const file = await fs.open('/a', 'append')
  await file.truncate(1)
  assert.deepEqual(outcomes(fs), new Set(['/a=kept', '/a=k']))
  await file.write(Buffer.from('x'))
  const seen = outcomes(fs)
  for (const outcome of ['/a=kept', '/a=kx', '/a=k', '/a=k0']) assert.ok(seen.has(outcome), outcome)
})

test('a name whose folder was not synced may be there or not, and each for itself', async () => {
  const fs = new ModelFileSystem()
  for (const path of ['/a', '/b']) await (await fs.open(path, 'create')).sync()
  assert.deepEqual(outcomes(fs), new Set(['', '/a=', '/b=', '/a=,/b=']))
})

test('a file that replaces another leaves the old or the new one under its name, never none', async () => {
  const fs = await withFile('old')
  const draft = await fs.open('/draft', 'create')
  await draft.write(Buffer.from('new'))
  await draft.sync()
  await fs.rename('/draft', '/a')
  const seen = outcomes(fs)
  assert.deepEqual(new Set([...seen].map(outcome => outcome.split(',')[0])), new Set(['/a=old', '/a=new']))
})

test('a removed name may come back', async () => {
  const fs = await withFile('kept')
  await fs.unlink('/a')
  assert.deepEqual(outcomes(fs), new Set(['', '/a=kept']))
})

test('a killed program leaves each prefix of its calls, and parts of each write', async () => {
  const fs = new ModelFileSystem()
  const file = await fs.open('/a', 'create')
  await file.write(Buffer.from('12345'))
  await fs.rename('/a', '/b')
  const states = killStates(fs, randomOf('1'))
  const left = states.map(({ disk }) =>
    [...filesOf(disk)].map(([path, bytes]) => `${path}=${bytes.toString()}`).join(),
  )
  assert.deepEqual([left[0], left[1], left[3], left[4]], ['', '/a=', '/a=12345', '/b=12345'])
  assert.match(left[2] ?? '', /^\/a=1\d{0,3}$/)
  assert.deepEqual(
    states.map(({ step }) => step),
    [0, 1, 1, 2, 3],
  )
})

test('the same seed gives the same failures, spread over the whole trace', async () => {
  const fs = await withFile('')
  const file = await fs.open('/a', 'append')
  for (let count = 0; count < 30; count += 1) await file.write(Buffer.from('some bytes'))
  const [first, again, other] = ['7', '7', '8'].map(seed => powerLossStates(fs, randomOf(seed), 60))
  assert.deepEqual(
    first?.map(({ text }) => text),
    again?.map(({ text }) => text),
  )
  assert.notDeepEqual(
    first?.map(({ text }) => text),
    other?.map(({ text }) => text),
  )
  assert.ok(new Set(first?.map(({ step }) => step)).size > 25)
})
