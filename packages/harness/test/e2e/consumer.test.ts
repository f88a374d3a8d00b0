import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { reply, startMockProvider } from '../../src/testing/index.ts'

const repo = join(import.meta.dirname, '../../../..')
const consumer = mkdtempSync(join(tmpdir(), 'dsh-consumer-'))

const plugin = `
  import { Service } from '@dsh/harness/kernel'
  import type { Context, PluginObject } from '@dsh/harness/kernel'
  import type { SessionEventMap } from '@dsh/protocol/events'

  declare module '@dsh/harness/kernel' {
    interface Services {
      greeter: Greeter
    }
  }
  declare module '@dsh/protocol/events' {
    interface SessionEventMap {
      'greeter/greet': { name: string }
    }
  }

  export class Greeter extends Service {
    greet({ name }: SessionEventMap['greeter/greet']): string {
      return 'hello ' + name
    }
  }

  export const greeter: PluginObject = {
    name: 'greeter',
    apply(ctx: Context) {
      new Greeter(ctx, 'greeter')
    },
  }
`

const app = `
  import { Context } from '@dsh/harness/kernel'
  import { greeter } from './plugin.js'

  const ctx = new Context()
  await ctx.plugin(greeter)
  console.log(ctx.get('greeter')?.greet({ name: 'world' }))
  await ctx.dispose()
`

function run(command: string, args: string[], cwd = consumer): string {
  const env = { ...process.env, DSH_HOME: join(consumer, 'home') }
  return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

before(() => {
  run('npm', ['run', 'build', '--silent'], repo)
  const folders = ['protocol', 'harness', 'cli'].map(name => `--workspace=packages/${name}`)
  run('npm', ['pack', '--silent', '--pack-destination', consumer, ...folders], repo)
  writeFileSync(join(consumer, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  writeFileSync(join(consumer, 'plugin.ts'), plugin)
  writeFileSync(join(consumer, 'app.ts'), app)
  run('npm', [
    'install',
    '--silent',
    '--prefer-offline',
    ...globSync('*.tgz', { cwd: consumer }).map(file => `./${file}`),
  ])
})

after(() => rmSync(consumer, { recursive: true }))

test('a third-party plugin compiles and runs against the packed packages', () => {
  const tsc = join(repo, 'node_modules/.bin/tsc')
  const types = ['--types', 'node', '--typeRoots', join(repo, 'node_modules/@types')]
  run(tsc, ['--strict', '--module', 'nodenext', '--target', 'es2024', ...types, 'app.ts', 'plugin.ts'])
  assert.equal(run(process.execPath, ['app.js']), 'hello world\n')
})

test('the installed command runs and needs no @dsh package', () => {
  const folder = join(consumer, 'node_modules/dsh')
  const { dependencies = {}, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  assert.deepEqual(
    Object.keys(dependencies).filter(name => name.startsWith('@dsh/')),
    [],
  )
  assert.equal(run('npx', ['dsh', '--version']), `dsh ${version}\n`)
})

test('what the installed command loads gets its kernel, of which there is one', () => {
  const host = `
    await import('./node_modules/dsh/bin.js')
    const { Context } = await import('./node_modules/dsh/dist/@dsh/harness/kernel.js')
    console.log(Context === (await import('@dsh/harness/kernel')).Context)
    await import('./app.js')
  `
  writeFileSync(join(consumer, 'host.js'), host)
  const lines = run(process.execPath, ['host.js', '--version']).trim().split('\n')
  assert.deepEqual(lines.slice(1), ['true', 'hello world'])

  const dist = join(consumer, 'node_modules/dsh/dist')
  const texts = globSync('**/*.{js,cjs}', { cwd: dist }).map(file => readFileSync(join(dist, file), 'utf8'))
  assert.equal(texts.filter(text => /class _?Context\b/.test(text)).length, 1)
})

test('the installed command runs a task with a plugin, from its code cache or without one', async t => {
  const home = join(consumer, 'warm')
  mkdirSync(home)
  writeFileSync(
    join(home, 'hello.ts'),
    `
      import { defineTool } from '@dsh/harness/tools'
      const execute = ({ name }) => \`Hello, \${name}!\`
      const hello = defineTool({ name: 'hello', description: 'Greet.', parameters: { name: { type: 'string' } }, execute })
      export const plugin = { name: 'hello', inject: ['tools'], apply: ctx => void ctx.tools.register(hello) }
    `,
  )
  writeFileSync(join(home, 'dsh.yml'), '- name: ./hello.ts\n')
  const script = [reply.toolCall('hello', { name: 'Rex' }), reply.text('greeted')]
  const mock = await startMockProvider({ script: [...script, ...script, ...script] })
  t.after(() => mock.close())
  const bin = join(consumer, 'node_modules/dsh/bin.js')
  const env = { PATH: process.env['PATH'], HOME: consumer, DSH_HOME: home, ...mock.env }
  const greet = async (): Promise<void> => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [bin, 'run', 'greet Rex'], {
      cwd: consumer,
      env,
    })
    assert.equal(stdout, 'greeted\n')
    assert.doesNotMatch(stderr, /warning/i)
    assert.match(mock.requests.at(-1)?.text ?? '', /Hello, Rex!/)
  }

  await greet()
  const [cache = ''] = globSync('cache/*/start-*.cjs.cache', { cwd: home })
  const cold = readFileSync(join(home, cache))
  await greet()
  const warm = readFileSync(join(home, cache))
  assert.equal(
    warm.readUInt32LE(4),
    cold.readUInt32LE(4) + 1,
    'the second run added to the cache of the first',
  )
  writeFileSync(join(home, cache), warm.fill(0, 1000, 2000))
  await greet()
})
