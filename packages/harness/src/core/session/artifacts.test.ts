import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { keepArtifact, Session, SessionArtifacts } from './index.ts'

const hello = new TextEncoder().encode('hello')
const helloHash = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'

test('a content is found under its hash, and neither side can change it for the other', async () => {
  const { artifacts } = Session.create(SessionId('s'))
  const bytes = Uint8Array.from(hello)
  assert.deepEqual(await artifacts.put(bytes, 'text/plain'), { sha256: helloHash, bytes: 5 })
  bytes.fill(0)
  const read = await artifacts.get(helloHash)
  assert.deepEqual(read, hello)
  read?.fill(0)
  assert.deepEqual(await artifacts.get(helloHash), hello)
  assert.equal(await artifacts.get('00'), undefined)
})

test('a store behind the artifacts gets what was there before and what comes after', async () => {
  const artifacts = new SessionArtifacts()
  await artifacts.put(hello, 'text/plain')
  const disk = new SessionArtifacts()
  const { moved, detach } = artifacts.attach(disk)
  assert.throws(() => artifacts.attach(disk), TypeError)
  await moved
  assert.deepEqual(await disk.get(helloHash), hello)
  const { sha256 } = await artifacts.put(Uint8Array.of(1), 'image/png')
  assert.deepEqual(await disk.get(sha256), Uint8Array.of(1))
  assert.deepEqual(await artifacts.get(helloHash), hello)
  detach()
  await artifacts.put(Uint8Array.of(2), 'image/png')
  assert.equal(await artifacts.get(sha256), undefined)
})

test('a content that a store fails to take stays where it was', async () => {
  const artifacts = new SessionArtifacts()
  await artifacts.put(hello, 'text/plain')
  const full = new Error('no space')
  const { moved } = artifacts.attach({
    put: () => Promise.reject(full),
    get: () => Promise.resolve(undefined),
  })
  await assert.rejects(moved, full)
  assert.deepEqual(await artifacts.get(helloHash), hello)
})

test('a text that a tool shows in part is kept whole, and a store that is full costs no more than that', async () => {
  const session = Session.create(SessionId('s'))
  assert.equal(await keepArtifact(session, 'hello'), helloHash)
  assert.deepEqual(await session.artifacts.get(helloHash), hello)
  assert.equal(await keepArtifact(undefined, 'hello'), undefined)
  const full = () => Promise.reject(new Error('no space'))
  session.artifacts.attach({ put: full, get: () => Promise.resolve(undefined) }).moved.catch(() => {})
  assert.equal(await keepArtifact(session, 'more'), undefined)
})

test('a fork finds the contents of the session it came from', async () => {
  const parent = Session.create(SessionId('p'))
  await parent.artifacts.put(hello, 'text/plain')
  const child = parent.branch(SessionId('c'), 0)
  assert.deepEqual(await child.artifacts.get(helloHash), hello)
  const { sha256 } = await child.artifacts.put(Uint8Array.of(1), 'image/png')
  assert.equal(await parent.artifacts.get(sha256), undefined)
})
