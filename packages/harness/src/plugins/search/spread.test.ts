import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PathSpread } from './spread.ts'

function choose(limit: number, paths: readonly string[]) {
  const spread = new PathSpread(limit)
  for (const path of paths) spread.add(path, path)
  return { chosen: spread.choose(), total: spread.total, groups: spread.groups }
}

test('what fits is given whole and in order', () => {
  const paths = ['b/1', 'a/1', 'c', 'b/2']
  assert.deepEqual(choose(4, paths), { chosen: paths, total: 4, groups: 3 })
})

test('each folder is seen before one is seen twice, and folders without more drop out', () => {
  const paths = ['big/1', 'big/2', 'big/3', 'big/4', 'big/5', 'small/1', 'root', 'big/6']
  assert.deepEqual(choose(5, paths).chosen, ['big/1', 'big/2', 'big/3', 'small/1', 'root'])
  assert.equal(choose(5, paths).total, 8)
})

test('a page with less room than there are folders shows one file of each of the first', () => {
  assert.deepEqual(choose(2, ['a/1', 'a/2', 'b/1', 'c/1']).chosen, ['a/1', 'b/1'])
})

test('one folder with ten thousand files does not hide twenty-one others', () => {
  const big = Array.from({ length: 10_000 }, (_, index) => `big/${index}`)
  const others = Array.from({ length: 21 }, (_, index) => `other${index}/file`)
  const { chosen, total, groups } = choose(100, [...big, ...others])
  assert.deepEqual([chosen.length, total, groups], [100, 10_021, 22])
  assert.ok(others.every(path => chosen.includes(path)))
  assert.deepEqual(chosen.slice(0, 79), big.slice(0, 79))
})

test('a backslash is part of a name', () => {
  assert.equal(choose(1, ['a\\b', 'c\\d']).groups, 1)
})
