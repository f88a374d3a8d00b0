/** What `adopt` takes and gives: data that JSON keeps exactly. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

type Container = Record<string | number, unknown>

/**
 * A deep-frozen copy of `value` that the caller cannot change, reading every property once. Free for what was adopted
 * before, wherever in `value` it stands. Throws a TypeError that names the path to what JSON would lose: undefined,
 * functions, −0, NaN, holes, cycles, class instances, symbol and hidden keys.
 */
export function adopt<T>(value: T, name = 'value'): T {
  if (!isContainer(value)) return scalar(value, name)
  if (Adopted.has(value)) return value
  const root = copyOf(value) ?? fail(value, name)
  const waiting = [root]
  for (let copy = waiting.pop(), count = 1; copy !== undefined; copy = waiting.pop(), count++) {
    if (!(Array.isArray(copy) ? fillArray(copy, waiting) : fillObject(copy, waiting))) fail(root, name)
    if (isDoubling(count) && hasCycle(value)) fail(value, name)
    if (copy !== root) Object.freeze(copy)
  }
  return Object.freeze(new Adopted(root)) as T
}

/**
 * Checks a value as `adopt` does and freezes it where it stands, for one that its owner gives away. A property with a
 * getter is no data here. The result is not marked: `adopt` copies it.
 */
export function freezeJson<T>(value: T, name = 'value'): T {
  if (!isContainer(value)) return scalar(value, name)
  if (Adopted.has(value)) return value
  const waiting = spare ?? []
  spare = undefined
  waiting.push(value)
  for (let next = waiting.pop(), count = 1; next !== undefined; next = waiting.pop(), count++) {
    if (!check(next, waiting)) fail(value, name)
    if (isDoubling(count) && hasCycle(value)) fail(value, name)
    Object.freeze(next)
  }
  spare = waiting
  return value
}

/** An empty list for the next walk. Taken away while one runs, since a proxy may start another. */
let spare: Container[] | undefined

/** Whether `adopt` would take `value`. A property with a getter does not count as data here. */
export function isJsonValue(value: unknown): value is Json {
  if (!isContainer(value)) return isScalar(value)
  const waiting: Container[] = [value]
  for (let next = waiting.pop(), count = 1; next !== undefined; next = waiting.pop(), count++) {
    if (!check(next, waiting)) return false
    if (isDoubling(count) && hasCycle(value)) return false
  }
  return true
}

/** Whether `value` is the very result of an earlier `adopt`. */
export function isAdopted(value: object): boolean {
  return Adopted.has(value)
}

/** Deep equality of two JSON values, whatever the order of keys. */
export function jsonEquals(a: unknown, b: unknown): boolean {
  const pairs: unknown[] = [a, b]
  while (pairs.length > 0) {
    const right = pairs.pop()
    const left = pairs.pop()
    if (left === right) continue
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right))
      return false
    const keys = Object.keys(left)
    if (keys.length !== Object.keys(right).length) return false
    for (const key of keys) {
      if (!Object.hasOwn(right, key)) return false
      pairs.push(left[key], right[key])
    }
  }
  return true
}

/** What a text says; undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// A private field marks an object more cheaply than a WeakSet, and nobody else can see or forge it.
class Adopted extends (class {
  constructor(value: object) {
    return value
  }
} as new (value: object) => object) {
  // oxlint-disable-next-line no-unused-private-class-members -- asked for by `in`
  readonly #mark = true

  static has(value: object): boolean {
    return #mark in value
  }
}

// Every property is read once, here; what comes later reads the copy.
function copyOf(source: Container): Container | undefined {
  if (Array.isArray(source)) {
    if (!isPlainArray(source) || Object.getOwnPropertySymbols(source).length > 0) return undefined
    if (Object.keys(source).length !== source.length) return undefined
    return Array.prototype.slice.call(source) as unknown as Container
  }
  if (!isPlainObject(source)) return undefined
  const copy = { ...source }
  const names = Object.getOwnPropertyNames(source).length
  if (names !== Object.keys(copy).length || Object.getOwnPropertySymbols(source).length > 0) return undefined
  return copy
}

function fillArray(copy: unknown[], waiting: Container[]): boolean {
  for (let index = 0; index < copy.length; index++) {
    const member = copy[index]
    if (typeof member === 'string') continue
    if (!isContainer(member)) {
      if (!isScalar(member)) return false
    } else if (!Adopted.has(member)) {
      const child = copyOf(member)
      if (child === undefined) return false
      copy[index] = child
      waiting.push(child)
    }
  }
  return true
}

function fillObject(copy: Container, waiting: Container[]): boolean {
  for (const key in copy) {
    const member = copy[key]
    if (typeof member === 'string') continue
    if (!isContainer(member)) {
      if (!isScalar(member)) return false
    } else if (!Adopted.has(member)) {
      const child = copyOf(member)
      if (child === undefined) return false
      copy[key] = child
      waiting.push(child)
    }
  }
  return true
}

/** Whether one container is plain data, its nested ones aside, which go on the list. */
function check(value: Container, waiting: Container[]): boolean {
  if (Object.getOwnPropertySymbols(value).length > 0) return false
  if (Array.isArray(value)) {
    if (!isPlainArray(value) || Object.keys(value).length !== value.length) return false
    for (let index = 0; index < value.length; index++) {
      if (getterOf.call(value, index) !== undefined || !checkMember(value[index], waiting)) return false
    }
    return true
  }
  if (!isPlainObject(value)) return false
  let count = 0
  for (const key in value) {
    count++
    if (getterOf.call(value, key) !== undefined || !checkMember(value[key], waiting)) return false
  }
  return Object.getOwnPropertyNames(value).length === count
}

function checkMember(member: unknown, waiting: Container[]): boolean {
  if (!isContainer(member)) return isScalar(member)
  if (!Adopted.has(member)) waiting.push(member)
  return true
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

function isScalar(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    default:
      return value === null
  }
}

function scalar<T>(value: T, name: string): T {
  if (!isScalar(value)) throw new TypeError(`${name} is ${show(value)}, which JSON does not keep`)
  return value
}

function isPlainObject(value: object): boolean {
  const proto: unknown = Object.getPrototypeOf(value)
  if (proto === Object.prototype || proto === null) return true
  // Plain data of another realm: its prototype is the root of that realm.
  return Object.getPrototypeOf(proto) === null && Object.hasOwn(proto as object, 'hasOwnProperty')
}

function isPlainArray(value: readonly unknown[]): boolean {
  const proto: unknown = Object.getPrototypeOf(value)
  return proto === Array.prototype || Array.isArray(proto)
}

const getterOf = (Object.prototype as unknown as { __lookupGetter__(key: PropertyKey): unknown })
  .__lookupGetter__

interface Place {
  readonly value: unknown
  readonly key: string
  readonly parent: Place | undefined
}

/** A walk round a cycle never ends, so looking for one at every doubling is soon enough, and free for what is small. */
function isDoubling(count: number): boolean {
  return count >= 4096 && (count & (count - 1)) === 0
}

function hasCycle(root: Container): boolean {
  const above = new Set<Container>()
  const waiting = [root]
  for (let value = waiting.at(-1); value !== undefined; value = waiting.at(-1)) {
    if (above.delete(value)) {
      waiting.pop()
      continue
    }
    above.add(value)
    for (const key of Object.keys(value)) {
      const member = getterOf.call(value, key) === undefined ? value[key] : undefined
      if (!isContainer(member) || Adopted.has(member)) continue
      if (above.has(member)) return true
      waiting.push(member)
    }
  }
  return false
}

function fail(root: Container, name: string): never {
  const found = findPlace(root, name, new Set())
  if (found === undefined) throw new TypeError(`${name} changes while it is read`)
  throw new TypeError(`${pathOf(found.place)} is ${found.problem}, which JSON does not keep`)
}

type Step = Place | { readonly leave: object }

function findPlace(
  root: unknown,
  name: string,
  above: Set<object>,
): { readonly place: Place; readonly problem: string } | undefined {
  const waiting: Step[] = [{ value: root, key: name, parent: undefined }]
  for (let step = waiting.pop(); step !== undefined; step = waiting.pop()) {
    if ('leave' in step) {
      above.delete(step.leave)
      continue
    }
    const { value } = step
    const problem = isContainer(value) && above.has(value) ? 'a cycle' : problemOf(value)
    if (problem !== undefined) return { place: step, problem }
    if (!isContainer(value) || Adopted.has(value)) continue
    above.add(value)
    waiting.push({ leave: value })
    const array = Array.isArray(value)
    for (const key of Object.keys(value).reverse()) {
      waiting.push({ value: value[key], key: array ? `[${key}]` : `.${key}`, parent: step })
    }
  }
  return undefined
}

function problemOf(value: unknown): string | undefined {
  if (!isContainer(value)) return isScalar(value) ? undefined : show(value)
  if (Object.getOwnPropertySymbols(value).length > 0) return 'an object with symbol keys'
  if (Array.isArray(value)) {
    if (!isPlainArray(value)) return `an instance of ${nameOf(value)}`
    return Object.keys(value).length === value.length ? undefined : 'an array with holes or extra keys'
  }
  if (!isPlainObject(value)) return `an instance of ${nameOf(value)}`
  const names = Object.getOwnPropertyNames(value)
  if (names.length !== Object.keys(value).length) return 'an object with hidden keys'
  return names.some(key => getterOf.call(value, key) !== undefined) ? 'an object with getters' : undefined
}

function show(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'undefined'
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    default:
      return `a ${typeof value}`
  }
}

function nameOf(value: Container): string {
  const constructor: unknown = value['constructor']
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class'
}

const shownKeys = 12

function pathOf(place: Place): string {
  const keys: string[] = []
  for (let at: Place | undefined = place; at !== undefined; at = at.parent) keys.unshift(at.key)
  const [root = '', ...inner] = keys
  const skipped = inner.length > shownKeys ? '…' : ''
  return `${root}${skipped}${inner.slice(-shownKeys).join('')}`
}
