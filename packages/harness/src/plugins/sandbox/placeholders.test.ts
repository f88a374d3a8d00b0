import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { RecordFile, sweepPlaceholders } from './placeholder-record.ts'
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

test('a free name is taken by a folder that says so until the end, and what is there is left alone', () => {
  using place = setup()
  fs.mkdirSync(place.at('.vscode'))
  fs.symlinkSync('elsewhere', place.at('.idea'))
  assert.equal(place.holders.take(place.at('.vscode')), 'there')
  assert.equal(place.holders.take(place.at('.idea')), 'link')
  assert.equal(place.holders.take(place.at('.envrc')), 'there')
  assert.equal(place.holders.take(place.at('.envrc')), 'there')
  assert.deepEqual([...place.holders.paths], [place.at('.envrc')])
  assert.equal(
    fs.readFileSync(place.at('.envrc/.gitignore'), 'utf8'),
    '# Takes this name while dsh runs, and goes when it ends.\n*\n',
  )
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
  fs.rmSync(place.at('commondir'))
  fs.writeFileSync(place.at('commondir'), '../real\n')
  place.holders.take(place.at('.idea'))
  fs.rmSync(place.at('.idea/.gitignore'))
  fs.writeFileSync(place.at('.idea/.gitignore'), 'workspace.xml\n')
  place.holders.release()
  assert.deepEqual(fs.readdirSync(place.root), ['.idea', '.vscode', 'commondir'])
  assert.deepEqual(fs.readdirSync(place.at('.vscode')), ['tasks.json'], 'and nothing of ours beside it')
  assert.equal(fs.readFileSync(place.at('.idea/.gitignore'), 'utf8'), 'workspace.xml\n')
})

test('where nobody can make anything no name is taken', { skip: process.platform !== 'linux' }, () => {
  assert.equal(new Placeholders().take('/sys/dsh'), undefined)
})

test('what a program that was killed left is taken away by the next, as its record tells', () => {
  using place = setup()
  const temps = place.at('temps')
  fs.mkdirSync(temps)
  const gone = join(temps, '4194305-0123456789ab')
  place.holders.recordIn(new RecordFile(gone))
  for (const name of ['.vscode', '.idea', 'commondir']) place.holders.take(place.at(name))
  fs.writeFileSync(place.at('.idea/workspace.xml'), '')
  const alive = new Placeholders()
  alive.recordIn(new RecordFile(join(temps, `${process.pid}-0123456789ab`)))
  alive.take(place.at('.envrc'))
  fs.symlinkSync(place.at('elsewhere'), join(temps, '4194305-ba9876543210.placeholders'))
  sweepPlaceholders(temps, { uid: process.getuid?.() })
  assert.deepEqual(fs.readdirSync(place.root), ['.envrc', '.idea', 'temps'])
  assert.deepEqual(fs.readdirSync(place.at('.idea')), ['workspace.xml'])
  assert.ok(fs.existsSync(join(temps, `${process.pid}-0123456789ab.placeholders`)))
  alive.release()
  assert.deepEqual(fs.readdirSync(temps), ['4194305-ba9876543210.placeholders'])
  sweepPlaceholders(place.at('none'), { uid: undefined })
})

test('a path that is not there is held at its first part that is missing', () => {
  using place = setup()
  fs.mkdirSync(place.at('a'))
  assert.equal(firstMissing(place.at('a/b/c/d'), place.root), place.at('a/b'))
  assert.equal(firstMissing(place.at('a/b'), place.root), place.at('a/b'))
  assert.equal(firstMissing(place.at('x/y'), place.root), place.at('x'))
})

test('where a name cannot be taken whole, nothing of it stays', t => {
  using place = setup()
  const { writeSync } = fs
  t.mock.method(fs, 'writeSync', (file: number) => {
    writeSync(file, 'h')
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })
  for (const name of ['.envrc', 'commondir'])
    assert.throws(() => place.holders.take(place.at(name)), { code: 'ENOSPC' })
  assert.deepEqual([fs.readdirSync(place.root), [...place.holders.paths]], [[], []])
  t.mock.restoreAll()
  assert.equal(place.holders.take(place.at('.envrc')), 'there')
})
