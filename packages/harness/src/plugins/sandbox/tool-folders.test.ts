import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeToolFolders, toolVariables } from './tool-folders.ts'
import type { ToolPlace } from './tool-folders.ts'

function setup() {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-tools-')))
  const [userHome, tempFolder] = [join(root, 'user'), join(root, 'temp')]
  for (const path of ['user/.cache/ms-playwright', 'user/.cache/go-build', 'user/.cargo/registry', 'temp'])
    fs.mkdirSync(join(root, path), { recursive: true })
  fs.writeFileSync(join(userHome, '.cargo/config.toml'), '')
  const place: ToolPlace = { tempFolder, userHome, env: {} }
  return {
    place,
    at: (name: string) => join(root, name),
    [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}

const confined = { network: false, writableRoots: [] }
const names = (variables: Readonly<Record<string, string>>): string =>
  Object.keys(variables).toSorted().join(' ')

test('tools that fetch nothing keep what they make in the temporary folder, and do not try to reach the network for long', () => {
  using world = setup()
  const variables = toolVariables(confined, world.place, { hasFetched: false })
  assert.deepEqual(variables, {
    BUNDLE_RETRY: '0',
    CARGO_NET_RETRY: '0',
    PIP_RETRIES: '1',
    UV_HTTP_RETRIES: '0',
    YARN_HTTP_RETRY: '0',
    npm_config_fetch_retries: '0',
    npm_config_logs_dir: world.at('temp/.cache/npm-logs'),
    GRADLE_RO_DEP_CACHE: world.at('user/.gradle/caches'),
    XDG_CACHE_HOME: world.at('temp/.cache/cache'),
    GRADLE_USER_HOME: world.at('temp/.cache/gradle'),
  })
})

test('from the first network on what is fetched is kept there too, and found without one', () => {
  using world = setup()
  const fetching = toolVariables({ ...confined, network: true }, world.place, { hasFetched: true })
  assert.equal(
    names(fetching),
    'BUN_INSTALL_CACHE_DIR CARGO_HOME GOMODCACHE GRADLE_RO_DEP_CACHE GRADLE_USER_HOME NUGET_PACKAGES PNPM_HOME XDG_CACHE_HOME YARN_GLOBAL_FOLDER npm_config_cache',
  )
  const later = toolVariables(confined, world.place, { hasFetched: true })
  assert.equal(later['npm_config_cache'], world.at('temp/.cache/npm'))
  for (const [name, value] of Object.entries(fetching)) assert.equal(later[name], value)
})

test('what may be written where it is stays there, also where a variable of the person says', () => {
  using world = setup()
  const policy = { network: true, writableRoots: [world.at('user/.npm'), world.at('caches')] }
  const place = { ...world.place, env: { XDG_CACHE_HOME: world.at('caches/xdg'), CARGO_HOME: '' } }
  const variables = toolVariables(policy, place, { hasFetched: true })
  assert.deepEqual(
    [variables['npm_config_cache'], variables['XDG_CACHE_HOME'], variables['CARGO_HOME']],
    [undefined, undefined, world.at('temp/.cache/cargo')],
  )
})

test('what a person has there is seen, but for what tools write to', () => {
  using world = setup()
  makeToolFolders(world.place)
  const { XDG_CACHE_HOME = '', CARGO_HOME = '' } = toolVariables(
    { ...confined, network: true },
    world.place,
    { hasFetched: true },
  )
  assert.deepEqual(
    [fs.readdirSync(XDG_CACHE_HOME), fs.readdirSync(CARGO_HOME)],
    [['ms-playwright'], ['config.toml']],
  )
  assert.equal(fs.readlinkSync(join(XDG_CACHE_HOME, 'ms-playwright')), world.at('user/.cache/ms-playwright'))
  const nobody = { ...world.place, userHome: world.at('none'), tempFolder: world.at('other') }
  makeToolFolders(nobody)
  assert.deepEqual(fs.readdirSync(world.at('other/.cache')), ['cache', 'cargo', 'gradle'])
})
