import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { proxyFor } from './index.ts'

describe('the proxy of a target', () => {
  const proxy = 'http://proxy:3128'
  const cases: readonly (readonly [
    target: string,
    env: Record<string, string>,
    proxy: string | undefined,
  ])[] = [
    ['https://api.x.com', { HTTPS_PROXY: proxy }, 'http://proxy:3128/'],
    ['https://api.x.com', { https_proxy: proxy, HTTPS_PROXY: 'http://other' }, 'http://proxy:3128/'],
    ['https://api.x.com', { HTTP_PROXY: proxy }, undefined],
    ['http://api.x.com', { HTTP_PROXY: proxy }, 'http://proxy:3128/'],
    ['https://api.x.com', { ALL_PROXY: proxy }, 'http://proxy:3128/'],
    ['https://api.x.com', { HTTPS_PROXY: 'proxy:3128' }, 'http://proxy:3128/'],
    ['https://api.x.com', { HTTPS_PROXY: '  ' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: '*' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: 'other, api.x.com' }, undefined],
    ['https://API.x.com', { HTTPS_PROXY: proxy, no_proxy: 'Api.X.com' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: 'x.com' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: '.x.com' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: '*.x.com' }, undefined],
    ['https://apix.com', { HTTPS_PROXY: proxy, NO_PROXY: 'x.com' }, 'http://proxy:3128/'],
    ['https://box.lan', { HTTPS_PROXY: proxy, NO_PROXY: '.lan' }, undefined],
    ['https://api.x.com:8443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.x.com:8443' }, undefined],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: 'api.x.com:8443' }, 'http://proxy:3128/'],
    ['https://api.x.com', { HTTPS_PROXY: proxy, NO_PROXY: 'api.x.com:443' }, undefined],
    ['http://127.0.0.1:1', { HTTP_PROXY: proxy }, undefined],
    ['http://localhost:1', { HTTP_PROXY: proxy }, undefined],
    ['http://[::1]:1', { HTTP_PROXY: proxy }, undefined],
  ]
  for (const [target, env, expected] of cases) {
    test(`${target} with ${JSON.stringify(env)} is ${expected}`, () => {
      assert.equal(proxyFor(new URL(target), name => env[name])?.href, expected)
    })
  }

  test('of a kind that cannot be used is refused with the name of its variable', () => {
    const find = () =>
      proxyFor(new URL('https://x.com'), name => (name === 'ALL_PROXY' ? 'socks5://u:p@h:1' : undefined))
    assert.throws(find, {
      name: 'TypeError',
      message: 'ALL_PROXY is no http or https URL; a proxy of another kind cannot be used',
    })
  })
})
