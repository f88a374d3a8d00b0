import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context } from '../../kernel/index.ts'
import type { Emit } from '../../kernel/index.ts'
import {
  AnonymousEntries,
  bindScopeParent,
  createScope,
  NamedEntries,
  scopeChainOf,
  scopeOf,
} from './index.ts'
import { ScopedCache, ScopedLayers, scopeTarget } from './index.ts'

declare module '../../kernel/index.ts' {
  interface Events {
    'scope-test/ping': Emit<[heard: string[]]>
  }
}

test('a scope tags its context at once, and the nearest tag wins', async () => {
  const ctx = new Context()
  const outer = { name: 'outer' }
  const inner = { name: 'inner' }
  const scope = createScope(ctx, outer)
  const nested = createScope(scope.ctx, inner)
  assert.equal(scopeOf(ctx), undefined)
  assert.equal(scopeOf(scope.ctx), outer)
  assert.equal(scopeOf(scope.ctx.extend()), outer)
  assert.equal(scopeOf(nested.ctx), inner)
  await ctx.dispose()
})

test('all who end a scope wait for the same end, after everything made through it is undone', async () => {
  const ctx = new Context()
  const undone: string[] = []
  const gate = Promise.withResolvers<void>()
  const scope = createScope(ctx, {})
  scope.ctx.effect(() => async () => {
    await gate.promise
    undone.push('slow')
  })
  scope.ctx.effect(() => () => void undone.push('fast'))
  const ends = [scope.dispose(), scope.dispose()].map(end => end.then(() => undone.push('end')))
  gate.resolve()
  await Promise.all(ends)
  assert.deepEqual(undone, ['fast', 'slow', 'end', 'end'])
  assert.throws(() => scope.ctx.on('scope-test/ping', () => {}), { code: 'INACTIVE_EFFECT' })
})

test('events flow up from a scope to those above it, never down or aside', () => {
  const ctx = new Context()
  const [parent, child, other] = [{}, {}, {}]
  const above = createScope(ctx, parent)
  const below = createScope(ctx, child, { parent })
  const aside = createScope(ctx, other)
  const hear = (at: Context, name: string): void =>
    void at.on('scope-test/ping', heard => void heard.push(name))
  hear(ctx, 'everybody')
  hear(above.ctx, 'parent')
  hear(below.ctx, 'child')
  aside.ctx.on('scope-test/ping', heard => void heard.push('global'), { global: true })
  hear(aside.ctx, 'other')
  const dispatch = (key: object | undefined): string[] => {
    const heard: string[] = []
    ctx.emit(scopeTarget(key), 'scope-test/ping', heard)
    return heard
  }
  assert.deepEqual(dispatch(child), ['everybody', 'parent', 'child', 'global'])
  assert.deepEqual(dispatch(parent), ['everybody', 'parent', 'global'])
  assert.deepEqual(dispatch(other), ['everybody', 'global', 'other'])
  assert.deepEqual(dispatch(undefined), ['everybody', 'global'])
})

test('a scope has one carrier, which notices when the scope moves', () => {
  const ctx = new Context()
  const [first, second, child] = [{}, {}, {}]
  const heard: string[] = []
  createScope(ctx, first).ctx.on('scope-test/ping', () => void heard.push('first'))
  createScope(ctx, second).ctx.on('scope-test/ping', () => void heard.push('second'))
  assert.equal(scopeTarget(child), scopeTarget(child))
  const binding = bindScopeParent(child, first)
  ctx.emit(scopeTarget(child), 'scope-test/ping', [])
  binding.rebind(second)
  ctx.emit(scopeTarget(child), 'scope-test/ping', [])
  binding.release()
  ctx.emit(scopeTarget(child), 'scope-test/ping', [])
  assert.deepEqual(heard, ['first', 'second'])
})

test('a scope has one parent, and no scope is below itself', () => {
  const [a, b, c] = [{}, {}, {}]
  const binding = bindScopeParent(b, a)
  bindScopeParent(c, b)
  assert.deepEqual(scopeChainOf(c), [c, b, a])
  assert.throws(() => bindScopeParent(b, {}), TypeError)
  assert.throws(() => bindScopeParent(a, c), TypeError)
  assert.throws(() => bindScopeParent(a, a), TypeError)
  assert.throws(() => binding.rebind(c), TypeError)
  assert.deepEqual(scopeChainOf(c), [c, b, a])
  binding.release()
  assert.throws(() => binding.rebind(a), TypeError)
})

test('a scope that ends is a root again, so its key can be used anew', async () => {
  const ctx = new Context()
  const [key, parent] = [{}, {}]
  await createScope(ctx, key, { parent }).dispose()
  assert.deepEqual(scopeChainOf(key), [key])
  createScope(ctx, key, { parent })
  assert.deepEqual(scopeChainOf(key), [key, parent])
})

test('a scope that cannot be bound is not made', async () => {
  const ctx = new Context()
  const [key, parent] = [{}, {}]
  createScope(ctx, key, { parent })
  assert.throws(() => createScope(ctx, key, { parent }), /already has a parent/)
  await new Promise(setImmediate)
  assert.deepEqual(
    ctx.inspect().children.map(({ state }) => state),
    ['active'],
  )
})

function layers() {
  return new ScopedLayers(() => ({ names: new NamedEntries<number>('number') }))
}

test('a registration belongs to the layer and the life of the context it is made through', async () => {
  const ctx = new Context()
  const store = layers()
  const [key, sibling] = [{}, {}]
  const scope = createScope(ctx, key)
  store.effect(ctx, 'one', layer => layer.names.add('one', 1))
  store.effect(scope.ctx, 'one', layer => layer.names.add('one', 11))
  store.effect(scope.ctx, 'two', layer => layer.names.add('two', 2))
  const seen = (at: object | undefined): object => Object.fromEntries(store.merge(at, layer => layer.names))
  assert.deepEqual(seen(undefined), { one: 1 })
  assert.deepEqual(seen(sibling), { one: 1 })
  assert.deepEqual(seen(key), { one: 11, two: 2 })
  await scope.dispose()
  assert.deepEqual(seen(key), { one: 1 })
  assert.equal(store.layerOf(key), undefined)
  await ctx.dispose()
  assert.deepEqual(seen(undefined), {})
})

test('nearer layers hide farther ones, at the place of what they hide', () => {
  const ctx = new Context()
  const store = layers()
  const [parent, child] = [{}, {}]
  store.effect(ctx, 'a', layer => layer.names.add('a', 1))
  store.effect(ctx, 'b', layer => layer.names.add('b', 1))
  store.effect(createScope(ctx, child, { parent }).ctx, 'a', layer => layer.names.add('a', 3))
  store.effect(createScope(ctx, parent).ctx, 'c', layer => layer.names.add('c', 2))
  assert.deepEqual(
    [...store.merge(child, layer => layer.names)],
    [
      ['a', 3],
      ['b', 1],
      ['c', 2],
    ],
  )
})

test('an observer that throws undoes the registration and leaves no layer', () => {
  const ctx = new Context()
  const store = layers()
  const key = {}
  const scope = createScope(ctx, key)
  const observer = {
    added: () => {
      throw new Error('no')
    },
  }
  assert.throws(() => store.effect(scope.ctx, 'one', layer => layer.names.add('one', 1), observer), /no/)
  assert.equal(store.layerOf(key), undefined)
  store.effect(scope.ctx, 'one', layer => layer.names.add('one', 1))
  assert.equal(store.layerOf(key)?.names.get('one'), 1)
})

test('what is made of the layers is kept until a registration or a scope moves', () => {
  const ctx = new Context()
  const store = layers()
  let runs = 0
  const cache = new ScopedCache(store, scope => ({
    run: ++runs,
    names: [...store.merge(scope, l => l.names)],
  }))
  const key = {}
  const first = cache.get(key)
  assert.equal(cache.get(key), first)
  assert.notEqual(cache.get(undefined), first)
  const undo = store.effect(ctx, 'one', layer => layer.names.add('one', 1))
  assert.deepEqual(cache.get(key).names, [['one', 1]])
  undo()
  assert.deepEqual(cache.get(key).names, [])
  const before = cache.get(key)
  bindScopeParent(key, {})
  assert.notEqual(cache.get(key), before)
})

test('names are unique, whatever they are, and an entry is taken away by identity', () => {
  const entries = new NamedEntries<number>('tool')
  for (const name of ['__proto__', 'constructor', 'toString']) entries.add(name, 1)
  assert.deepEqual(
    [...entries].map(([name]) => name),
    ['__proto__', 'constructor', 'toString'],
  )
  assert.throws(() => entries.add('constructor', 2), {
    code: 'DUPLICATE_NAME',
    message: 'tool "constructor" is already registered here',
  })
  const undo = entries.add('x', 1)
  undo()
  entries.add('x', 2)
  undo()
  assert.equal(entries.get('x'), 2)
})

test('equal values without names are kept apart', () => {
  const entries = new AnonymousEntries<string>()
  const undo = entries.add('same')
  entries.add('same')
  undo()
  undo()
  assert.deepEqual([...entries], ['same'])
})
