import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { firstMissing, Placeholders } from './placeholders.ts'

function setup() {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-placeholders-')))
  const holders = new Placeholders()
  return {
    root,
    holders,
    at: (name: string) => join(root, name),
    [Symbol.dispose]: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}

test('a free name is taken by an empty folder until the end, and what is there is left alone', () => {
  using place = setup()
  fs.mkdirSync(place.at('.vscode'))
  fs.symlinkSync('elsewhere', place.at('.idea'))
  assert.equal(place.holders.take(place.at('.vscode')), 'there')
  assert.equal(place.holders.take(place.at('.idea')), 'link')
  assert.equal(place.holders.take(place.at('.envrc')), 'made')
  assert.equal(place.holders.take(place.at('.envrc')), 'made')
  place.holders.release()
  assert.deepEqual(fs.readdirSync(place.root), ['.idea', '.vscode'])
  place.holders.release()
})

test('what somebody put something into stays', () => {
  using place = setup()
  place.holders.take(place.at('.vscode'))
  place.holders.take(place.at('commondir'))
  assert.equal(fs.readFileSync(place.at('commondir'), 'utf8'), '.\n')
  fs.writeFileSync(place.at('.vscode/tasks.json'), '{}')
  assert.equal(place.holders.take(place.at('.vscode')), 'there')
  fs.rmSync(place.at('commondir'))
  fs.writeFileSync(place.at('commondir'), '../real\n')
  place.holders.release()
  assert.deepEqual(fs.readdirSync(place.root), ['.vscode', 'commondir'])
})

test('where nobody can make anything no name is taken', { skip: process.platform !== 'linux' }, () => {
  assert.equal(new Placeholders().take('/sys/dsh'), undefined)
})

test('a path that is not there is held at its first part that is missing', () => {
  using place = setup()
  fs.mkdirSync(place.at('a'))
  assert.equal(firstMissing(place.at('a/b/c/d'), place.root), place.at('a/b'))
  assert.equal(firstMissing(place.at('a/b'), place.root), place.at('a/b'))
  assert.equal(firstMissing(place.at('x/y'), place.root), place.at('x'))
})
