import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHarness } from '../../testing/index.ts'
import { BashEnvironment } from './environment.ts'

async function setup(home?: string) {
  const harness = await createHarness()
  const { ctx } = harness
  await ctx.plugin({ name: 'env', apply: own => void new BashEnvironment(own, home) })
  const failures: unknown[] = []
  ctx.on('internal/error', error => void failures.push((error as Error).message))
  return { ctx, failures, agent: harness.agent('s'), [Symbol.asyncDispose]: () => ctx.dispose() }
}

const variables = { DSH_JOB: { description: 'the job' } }

test('a command learns that it runs in the harness, where its home is and for which session', async () => {
  await using world = await setup('/home/dsh')
  const collected = world.ctx.bashEnv.collect({ agent: world.agent })
  assert.deepEqual(Object.entries(collected), [
    ['DSH_HOME', '/home/dsh'],
    ['DSH_SESSION_ID', 's'],
    ['DSH_SHELL', '1'],
  ])
  assert.ok(Object.isFrozen(collected))
  await using bare = await setup()
  assert.deepEqual(bare.ctx.bashEnv.collect({}), { DSH_SHELL: '1' })
})

test('a plugin adds variables for as long as it is there', async () => {
  await using world = await setup()
  const { bashEnv } = world.ctx
  const plugin = world.ctx.plugin({
    name: 'job',
    inject: ['bashEnv'],
    apply: own => void own.bashEnv.register({ name: 'job', variables, resolve: () => ({ DSH_JOB: '7' }) }),
  })
  await plugin
  assert.deepEqual(bashEnv.collect({}), { DSH_JOB: '7', DSH_SHELL: '1' })
  assert.deepEqual(
    bashEnv.list().find(({ name }) => name === 'DSH_JOB'),
    {
      name: 'DSH_JOB',
      description: 'the job',
      contributor: 'job',
    },
  )
  await plugin.dispose()
  assert.deepEqual(bashEnv.collect({}), { DSH_SHELL: '1' })
})

test('what is blank, malformed, reserved or taken is refused', async () => {
  await using world = await setup()
  const { bashEnv } = world.ctx
  const resolve = () => ({})
  bashEnv.register({ name: 'job', variables, resolve })
  for (const [name, refused] of [
    [' ', {}],
    ['job', {}],
    ['other', variables],
    ['other', { DSH_HOME: { description: 'x' } }],
    ['other', { DSH_PROCESS: { description: 'x' } }],
    ['other', { DSH_lower: { description: 'x' } }],
    ['other', { PATH: { description: 'x' } }],
    ['other', { DSH_X: { description: '' } }],
  ] as const)
    assert.throws(() => bashEnv.register({ name, variables: refused, resolve }), {
      code: 'INVALID_VARIABLES',
    })
})

test('a contributor that fails, or gives what it did not declare, costs its own variables', async () => {
  await using world = await setup()
  const { bashEnv } = world.ctx
  const give = (name: string, resolve: () => Record<string, string>): void =>
    void bashEnv.register({ name, variables: { [`DSH_${name}`]: { description: 'x' } }, resolve })
  give('A', () => {
    throw new Error('boom')
  })
  give('B', () => ({ PATH: '/evil' }))
  give('C', () => ({ DSH_C: 1 as never }))
  give('D', () => ({ DSH_D: 'fine' }))
  assert.deepEqual(bashEnv.collect({}), { DSH_D: 'fine', DSH_SHELL: '1' })
  assert.deepEqual(world.failures, ['boom', '"B" did not declare "PATH"', '"C" gave no text for "DSH_C"'])
})
