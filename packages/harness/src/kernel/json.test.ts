import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { adopt, freezeJson, isAdopted, isJsonValue, jsonEquals, parseJson } from './json.ts'

function nested(depth: number): unknown {
  let value: unknown = 'core'
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { inner: value }
  return value
}

function isDeepFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return Object.isFrozen(value) && Object.values(value).every(isDeepFrozen)
}

class Point {
  x = 1
}

const cycle: { a: unknown[] } = { a: [{}] }
cycle.a.push({ back: cycle })

const lossy: readonly (readonly [name: string, value: unknown, message: RegExp])[] = [
  ['undefined', undefined, /^value is undefined,/],
  ['a function', { run: () => 1 }, /^value\.run is a function,/],
  ['a bigint', [1n], /^value\[0\] is a bigint,/],
  ['minus zero', { n: -0 }, /^value\.n is -0,/],
  ['NaN', [{ n: NaN }], /^value\[0\]\.n is NaN,/],
  ['infinity', -Infinity, /^value is -Infinity,/],
  ['a hole', { list: Object.assign([], { length: 2 }) }, /^value\.list is an array with holes/],
  [
    'an extra key on a list',
    Object.assign([1], { extra: 2 }),
    /^value is an array with holes or extra keys,/,
  ],
  ['a cycle', cycle, /is a cycle,/],
  ['a date', { at: new Date(0) }, /^value\.at is an instance of Date,/],
  ['a map', new Map(), /^value is an instance of Map,/],
  ['a class instance', [new Point()], /^value\[0\] is an instance of Point,/],
  ['a subclass of Array', new (class List extends Array {})(), /^value is an instance of List,/],
  ['a boxed string', Object('x'), /^value is an instance of String,/],
  ['a symbol', { s: Symbol('s') }, /^value\.s is a symbol,/],
  ['a symbol key', { a: { [Symbol('s')]: 1 } }, /^value\.a is an object with symbol keys,/],
  [
    'a hidden key',
    Object.defineProperty({ a: 1 }, 'b', { value: 2 }),
    /^value is an object with hidden keys,/,
  ],
]

for (const [name, value, message] of lossy) {
  test(`${name} is refused with the path to it`, () => {
    assert.throws(() => adopt(value), { name: 'TypeError', message })
    assert.throws(() => freezeJson(value), { name: 'TypeError', message })
    assert.equal(isJsonValue(value), false)
  })
}

test('any JSON value is adopted as an equal frozen copy, and again for free', () => {
  fc.assert(
    fc.property(fc.jsonValue(), given => {
      const value: unknown = JSON.parse(JSON.stringify(given))
      const adopted = adopt(value)
      assert.deepEqual(adopted, value)
      assert.equal(isJsonValue(value), true)
      assert.ok(isDeepFrozen(adopted))
      assert.equal(adopt(adopted), adopted)
      assert.ok(jsonEquals(adopted, value))
      assert.equal(freezeJson(value), value)
      assert.ok(isDeepFrozen(value))
    }),
  )
})

test('what was adopted before is kept as it is inside a new value', () => {
  const message = adopt({ text: ['a'] })
  const outer = adopt({ turn: 1, messages: [message] })
  assert.equal(outer.messages[0], message)
  assert.ok(isAdopted(outer))
  assert.ok(!isAdopted(outer.messages))
})

test('the copy does not follow its source, and neither does it show the mark', () => {
  const source = { list: [{ text: 'a' }] }
  const copy = adopt(source)
  source.list[0] = { text: 'b' }
  source.list.push({ text: 'c' })
  assert.deepEqual(copy, { list: [{ text: 'a' }] })
  assert.deepEqual(Reflect.ownKeys(copy), ['list'])
  assert.throws(() => copy.list.push({ text: 'd' }), TypeError)
})

test('a frozen value of somebody else is copied, since its inside may still change', () => {
  const inner = { text: 'a' }
  const outer = Object.freeze({ inner })
  const copy = adopt(outer)
  inner.text = 'b'
  assert.equal(copy.inner.text, 'a')
})

test('a getter is read once, and what it gave that time is kept', () => {
  let reads = 0
  const value = {
    get count() {
      return ++reads
    },
    list: Object.defineProperty([0], 0, { enumerable: true, get: () => ++reads }),
  }
  assert.deepEqual(adopt(value), { count: 1, list: [2] })
  assert.equal(reads, 2)
})

test('a value that is given away may have no getter, as it would go on changing', () => {
  const value = {
    a: {
      get now() {
        return Date.now()
      },
    },
  }
  assert.throws(() => freezeJson(value), /^TypeError: value\.a is an object with getters,/)
  assert.equal(isJsonValue(value), false)
})

test('12 000 levels of nesting are adopted, frozen, checked and compared', () => {
  const depth = 12_000
  const adopted = adopt(nested(depth))
  assert.ok(Object.isFrozen(adopted))
  assert.ok(isJsonValue(nested(depth)))
  assert.ok(jsonEquals(adopted, freezeJson(nested(depth))))
  let innermost = adopted
  while (typeof innermost === 'object') [innermost] = Object.values(innermost as object) as unknown[]
  assert.equal(innermost, 'core')
})

test('an error deep down says the last part of the way', () => {
  let value: unknown = { end: undefined }
  for (let level = 0; level < 5000; level++) value = { in: value }
  assert.throws(() => adopt(value), /^TypeError: value…(\.in){11}\.end is undefined,/)
})

test('keys named like members of Object are ordinary data', () => {
  const text = '{"__proto__":{"a":1},"constructor":null,"toString":"x","hasOwnProperty":[]}'
  const copy = adopt(JSON.parse(text))
  assert.equal(JSON.stringify(copy), text)
  assert.equal(Object.getPrototypeOf(copy), Object.prototype)
  assert.ok(jsonEquals(copy, JSON.parse(text)))
  assert.ok(!jsonEquals(copy, JSON.parse('{"constructor":null,"toString":"x","hasOwnProperty":[],"a":1}')))
})

test('plain data without a prototype or from another realm is taken', () => {
  assert.deepEqual(adopt(Object.assign(Object.create(null), { a: 1 })), { a: 1 })
  const foreign: unknown = runInNewContext('({list: [{a: 1}]})')
  assert.deepEqual(adopt(foreign), { list: [{ a: 1 }] })
  assert.equal(isJsonValue(runInNewContext('new (class Point {})()')), false)
})

test('equality does not depend on the order of keys, and tells lists from records', () => {
  assert.ok(jsonEquals({ a: 1, b: [2, { c: 3 }] }, { b: [2, { c: 3 }], a: 1 }))
  assert.ok(!jsonEquals({ a: 1 }, { a: 1, b: 2 }))
  assert.ok(!jsonEquals({ a: 1, b: 2 }, { a: 1, c: 2 }))
  assert.ok(!jsonEquals([], {}))
  assert.ok(!jsonEquals([1], [1, 2]))
  assert.ok(!jsonEquals({ a: null }, { a: {} }))
})

test('a text that is not JSON says nothing', () => {
  assert.deepEqual(parseJson('{"a":[null]}'), { a: [null] })
  assert.equal(parseJson('null'), null)
  assert.equal(parseJson(''), undefined)
  assert.equal(parseJson('{"a":1'), undefined)
})
