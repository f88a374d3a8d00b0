import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { textLines } from './text-lines.ts'

function fileWith(t: TestContext, content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-lines-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'file')
  writeFileSync(path, content)
  return path
}

test('lines come whole, however the file is read in pieces', async t => {
  const long = '漢'.repeat(200_000)
  const text = `\ufeffone\n\n${long}\u2028\r\n${long}\nlast`
  const lines = await Array.fromAsync(textLines(fileWith(t, text)))
  assert.deepEqual(lines, ['one', '', `${long}\u2028\r`, long, 'last'])
  assert.deepEqual(await Array.fromAsync(textLines(fileWith(t, ''))), [''])
  assert.deepEqual(await Array.fromAsync(textLines(fileWith(t, 'a\n'))), ['a', ''])
})

test('what is no text is refused, cut short or not, and so is a line without an end', async t => {
  for (const bytes of [
    [0x61, 0x0a, 0xff],
    [0x61, 0x0a, 0xe6, 0xbc],
  ])
    await assert.rejects(Array.fromAsync(textLines(fileWith(t, new Uint8Array(bytes)))), { code: 'NO_TEXT' })
  const path = fileWith(t, `ok\n${'x'.repeat(11)}`)
  await assert.rejects(Array.fromAsync(textLines(path, { longest: 10 })), {
    code: 'LINE_TOO_LONG',
    message: 'line 2 is longer than 10 characters',
  })
  await assert.rejects(Array.fromAsync(textLines('/dev/zero', { longest: 2 ** 20 })), {
    code: 'LINE_TOO_LONG',
  })
})
