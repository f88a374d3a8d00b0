import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopRequest, markLoopRequest } from './index.ts'

test('a request that one copy of the module marks is known to the others', async () => {
  const url = new URL('loop-request.ts?copy', import.meta.url)
  const copy = (await import(url.href)) as { readonly markLoopRequest: typeof markLoopRequest }
  assert.notEqual(copy.markLoopRequest, markLoopRequest)
  const request = copy.markLoopRequest(Object.freeze({ provider: 'p', model: 'm', messages: [] }))
  assert.ok(isLoopRequest(request))
  assert.ok(!isLoopRequest({ ...request }))
})
