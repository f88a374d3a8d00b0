import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { LocalFs } from './local.ts'
import type { FsEditRequest, FsVersion } from './service.ts'

function setup(content: string | Uint8Array) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-edit-')))
  const path = join(dir, 'a')
  fs.writeFileSync(path, content)
  const local = new LocalFs({ cwd: dir, diffBasisMaxBytes: 10 * 2 ** 20 })
  const edit = async (
    oldString: string,
    newString: string,
    { version, signal, ...rest }: Partial<FsEditRequest> & { version?: FsVersion; signal?: AbortSignal } = {},
  ) => {
    const expected = version === undefined ? undefined : { version }
    const request = { oldString, newString, replaceAll: false, ...rest }
    return await local.editText(await local.resolve('a'), [request], expected, signal)
  }
  const edits = async (...list: readonly [string, string, Partial<FsEditRequest>?][]) => {
    const requests = list.map(([oldString, newString, rest]) => ({
      oldString,
      newString,
      replaceAll: false,
      ...rest,
    }))
    return await local.editText(await local.resolve('a'), requests)
  }
  return {
    path,
    edit,
    edits,
    bytes: () => fs.readFileSync(path),
    version: async () => (await local.stat(await local.resolve('a')))?.version,
    [Symbol.dispose]: () => fs.rmSync(dir, { recursive: true, force: true }),
  }
}

test('an edit keeps mark, line ends and missing final newline to the byte', async () => {
  using file = setup('\ufeffdef a():\r\n  x\r\n\tz\n end')
  const done = await file.edit('def a():\n  x', 'def a():\n  y')
  assert.deepEqual(file.bytes(), Buffer.from('\ufeffdef a():\r\n  y\r\n\tz\n end'))
  assert.equal(done.before, 'def a():\n  x\n\tz\n end')
  assert.equal(done.after, 'def a():\n  y\n\tz\n end')
  assert.equal(done.replacements, 1)
  assert.equal(done.version, await file.version())
})

test('a file that is not UTF-8 is refused and stays as it is', async () => {
  const latin = Buffer.from([0x61, 0xe9, 0x0a, 0x62])
  using file = setup(latin)
  await assert.rejects(file.edit('b', 'c'), {
    code: 'FS_NOT_TEXT',
    message: `${file.path} is not UTF-8 (byte 0xE9 at offset 1)`,
  })
  assert.deepEqual(file.bytes(), latin)
})

test('a NUL anywhere makes a file binary for an edit', async () => {
  using file = setup(Buffer.concat([Buffer.alloc(20_000, 'a'), Buffer.from([0])]))
  await assert.rejects(file.edit('aaa', 'b'), {
    code: 'FS_NOT_TEXT',
    message: `${file.path} is binary, not text`,
  })
})

test('a changed file is told before anything is looked for', async () => {
  using file = setup('one')
  const version = await file.version()
  fs.writeFileSync(file.path, 'changed')
  await assert.rejects(file.edit('missing', 'x', { ...(version && { version }) }), {
    code: 'FS_STALE_VERSION',
    message: `${file.path} has changed since it was read`,
  })
})

test('a missing file is told as gone, expected or not', async () => {
  using file = setup('one')
  fs.rmSync(file.path)
  await assert.rejects(file.edit('one', 'x'), { code: 'FS_STALE_VERSION' })
})

test('text found several times is refused with the lines and what to do', async () => {
  using file = setup('x\n'.repeat(12))
  await assert.rejects(file.edit('x', 'y'), {
    code: 'FS_AMBIGUOUS_EDIT',
    message:
      `old_string is found 12 times in ${file.path}, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …; ` +
      'add lines around it to make it unique, or set replace_all',
  })
  assert.equal((await file.edit('x', 'y', { replaceAll: true })).replacements, 12)
})

test('text that is not there is answered with the nearest lines', async () => {
  using file = setup('a\nfunction add(a, b) {\n  return a - b\n}\nfunction sub(a, b) {\n  return a\n}\n')
  await assert.rejects(file.edit('function add(a, b) {\n  return a + b\n}', 'x'), {
    code: 'FS_EDIT_NOT_FOUND',
    message: `old_string is not in ${file.path}; the nearest text is\n2: function add(a, b) {\n3:   return a - b\n4: }`,
  })
  await assert.rejects(file.edit('zebra', 'x'), {
    code: 'FS_EDIT_NOT_FOUND',
    message: `old_string is not in ${file.path}`,
  })
})

test('the nearest lines are shown whole in number but not in length, never cut inside a character', async () => {
  using file = setup(`const x = "${'🐳'.repeat(100)}"\n`)
  await assert.rejects(file.edit(`const x = "${'🐳'.repeat(99)}`.replace('x', 'y'), 'z'), (error: Error) => {
    const shown = error.message.split('\n')[1] ?? ''
    assert.ok(shown.isWellFormed() && !shown.includes('\ufffd'), shown)
    assert.ok(Buffer.byteLength(shown) <= 203, shown)
    return true
  })
})

test('an edit made before is told as made', async () => {
  using file = setup('a\nnew text\n')
  await assert.rejects(file.edit('old text', 'new text'), {
    code: 'FS_EDIT_NOT_FOUND',
    message: `nothing to do: new_string is already in ${file.path} at line 2`,
  })
})

test('empty old text is a mistake of the caller, and ends at once', async () => {
  using file = setup('abc')
  await assert.rejects(file.edit('', 'x', { replaceAll: true }), TypeError)
})

test('a cancelled edit leaves the file', async () => {
  using file = setup('one')
  await assert.rejects(file.edit('one', 'x', { signal: AbortSignal.abort() }), { code: 'FS_ABORTED' })
  assert.equal(file.bytes().toString(), 'one')
})

test('several edits are made one after the other, each on the text that those before it made', async () => {
  using file = setup('one\r\ntwo\r\n')
  const done = await file.edits(
    ['one', 'two'],
    ['two\n', 'three\n', { replaceAll: true }],
    ['three\nthree', 'four'],
  )
  assert.equal(file.bytes().toString(), 'four\r\n')
  assert.deepEqual(
    [done.before, done.after, done.replacements, done.match],
    ['one\ntwo\n', 'four\n', 4, 'exact'],
  )
})

test('one edit that cannot be made undoes all of them, and is told by its number', async () => {
  using file = setup('one\ntwo\ntwo\n')
  await assert.rejects(file.edits(['one', 'zero'], ['two', 'x'], ['gone', 'y']), {
    code: 'FS_AMBIGUOUS_EDIT',
    message:
      `edit 2 of 3: old_string is found 2 times in ${file.path}, at lines 2, 3; add lines around it to make it unique, ` +
      'or set replace_all\nnone of the edits was made; lines count as after the edits before it',
  })
  await assert.rejects(file.edits(['zebra', 'x'], ['one', 'zero']), {
    code: 'FS_EDIT_NOT_FOUND',
    message: `edit 1 of 2: old_string is not in ${file.path}\nnone of the edits was made`,
  })
  assert.equal(file.bytes().toString(), 'one\ntwo\ntwo\n')
})

test('of several edits the least exact one tells how they were found', async () => {
  using file = setup('a  \n“b”\nc\n')
  assert.equal((await file.edits(['a\n', 'A\n'], ['"b"', 'B'], ['c', 'C'])).match, 'punctuation')
})
