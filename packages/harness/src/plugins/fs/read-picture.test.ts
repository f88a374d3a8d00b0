import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { gif, jpeg, png, webp } from '../../testing/pictures.ts'
import { attachments } from '../attachments/index.ts'
import type { AttachmentsConfig } from '../attachments/index.ts'
import { fs as files } from './index.ts'

async function setup(config: Partial<AttachmentsConfig> | 'no store' = {}) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-picture-')))
  const { ctx } = await createHarness([])
  const store = config === 'no store' ? undefined : ctx.plugin(attachments, config)
  await store
  await ctx.plugin(files, { cwd: dir, readImage: true })
  const agentOptions = { provider: 'mock', model: 'mock' }
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir }, agentOptions })
  let calls = 0
  const call = async (file_path: string, name = 'read', by: typeof agent | undefined = agent) => {
    const signal = new AbortController().signal
    const input = { callId: CallId(`c${++calls}`), name, arguments: { file_path } as JsonValue, signal }
    const result = await ctx.tools.execute({ ...input, ...(by && { agent: by }) })
    const [block] = result.content
    const text = block?.type === 'text' ? block.text : assert.fail('no text')
    return { result, text, code: result.isError ? result.error.info?.code : undefined }
  }
  return {
    ctx,
    dir,
    agent,
    store,
    call,
    put: (name: string, content: string | Uint8Array) => fs.writeFileSync(join(dir, name), content),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

test('a picture is shown by what it is, whatever it is called, and kept with the session', async () => {
  await using world = await setup()
  const bytes = png(820, 582)
  world.put('shot.txt', bytes)
  const { result, text } = await world.call('shot.txt')
  const path = join(world.dir, 'shot.txt')
  assert.equal(
    text,
    `<path>${path}</path>\n<type>image</type>\n<content>\n(image/png, 820×582 pixels, ${bytes.length} bytes)\n</content>`,
  )
  const block = result.content[1]
  const attachment = block?.type === 'image' ? block.attachment : assert.fail('no picture')
  assert.deepEqual(
    { ...attachment, sha256: '' },
    { sha256: '', mediaType: 'image/png', bytes: bytes.length, width: 820, height: 582 },
  )
  assert.deepEqual(Buffer.from((await world.agent.session.artifacts.get(attachment.sha256)) ?? []), bytes)
  const meta = result.meta as { image: JsonValue; seen: { key: string } }
  assert.deepEqual([meta.image, meta.seen.key], [attachment, path])
  for (const make of [jpeg, gif, webp]) {
    world.put('p', make(3, 2))
    assert.match((await world.call('p')).text, /3×2 pixels/)
  }
})

test('read_image does the same, and is found only by those who look for it', async () => {
  await using world = await setup()
  world.put('a.png', png(3, 2))
  world.put('a.txt', 'text')
  const { result } = await world.call('a.png', 'read_image')
  assert.deepEqual(result.content, (await world.call('a.png')).result.content)
  assert.deepEqual(
    world.ctx.tools.deferred().map(schema => JSON.stringify(schema)),
    [
      '{"name":"read_image","description":"See a picture (png, jpeg, webp, gif); read does the same.",' +
        '"parameters":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}}',
    ],
  )
  assert.ok(!world.ctx.tools.schemas().some(({ name }) => name === 'read_image'))
  const refused = await world.call('a.txt', 'read_image')
  assert.deepEqual(
    [refused.code, refused.text],
    ['FS_NOT_TEXT', `Error: ${world.dir}/a.txt is not a picture`],
  )
  assert.equal((await world.call(' ', 'read_image')).code, 'INVALID_ARGS')
  assert.equal((await world.call('b.png', 'read_image')).code, 'FS_NOT_FOUND')
  assert.equal((await world.call('.', 'read_image')).code, 'FS_NOT_REGULAR_FILE')
})

test('a picture that cannot be admitted is refused with why', async () => {
  await using world = await setup({ maxImageBytes: 5000, maxImagePixels: 100, maxImageDimension: 50 })
  const refusal = async (bytes: Uint8Array) => {
    world.put('a.png', bytes)
    const { code, text } = await world.call('a.png')
    return [code, text]
  }
  assert.deepEqual(await refusal(png(51, 1)), [
    'IMAGE_DIMENSION_TOO_LARGE',
    'Error: the picture has 51×1 pixels, a side may have 50; make it smaller first',
  ])
  assert.deepEqual(await refusal(png(50, 3)), [
    'IMAGE_TOO_MANY_PIXELS',
    'Error: the picture has 50×3 pixels, 100 in all can be shown; make it smaller first',
  ])
  assert.deepEqual(await refusal(png(5, 3).subarray(0, 60)), [
    'INVALID_IMAGE',
    'Error: the picture begins as image/png and is broken or cut off',
  ])
  assert.deepEqual(await refusal(Buffer.concat([png(1, 1), Buffer.alloc(5000)])), [
    'IMAGE_TOO_LARGE',
    `Error: ${world.dir}/a.png has 5067 bytes, and pictures of at most 5000 can be shown; make it smaller first`,
  ])
})

test('a file that is neither text nor picture is told as what it is', async () => {
  await using world = await setup({ maxImageBytes: 100 })
  const cases: Record<string, [string | Uint8Array, string]> = {
    'a.pdf': ['%PDF-1.7\n\0', 'is a PDF; in bash, pdftotext FILE - prints its text'],
    'big.pdf': [`%PDF-1.7\n\0${'x'.repeat(200)}`, 'is a PDF; in bash, pdftotext FILE - prints its text'],
    'a.docx': ['PK\x03\x04\0', 'is a ZIP archive, as Office documents are; in bash, unzip -l FILE lists it'],
    'a.gz': [Buffer.from([0x1f, 0x8b, 8, 0]), 'is compressed; in bash, zcat FILE prints it'],
    'a.db': ['SQLite format 3\0', 'is an SQLite database; in bash, sqlite3 FILE reads it'],
    program: ['\x7fELF\0', 'is a compiled program'],
    other: ['a\0b', 'is binary, not text'],
    latin: [Buffer.from('caf\xe9', 'latin1'), 'is not UTF-8 (byte 0xE9 at offset 3)'],
    utf16: [Buffer.from('\ufeffhi', 'utf16le'), 'is UTF-16, and only UTF-8 can be handled'],
  }
  for (const [name, [content, what]] of Object.entries(cases)) {
    world.put(name, content)
    const { code, text } = await world.call(name)
    assert.deepEqual([code, text], ['FS_NOT_TEXT', `Error: ${world.dir}/${name} ${what}`])
  }
})

test('without a store or a session pictures are told as what they are', async () => {
  await using bare = await setup('no store')
  bare.put('a.png', png(3, 2))
  const what = 'is a picture, and pictures cannot be shown here'
  assert.equal((await bare.call('a.png')).text, `Error: ${bare.dir}/a.png ${what}`)
  await using world = await setup()
  world.put('a.png', png(3, 2))
  const path = join(world.dir, 'a.png')
  const signal = new AbortController().signal
  const input = { callId: CallId('x'), name: 'read', arguments: { file_path: path }, signal }
  assert.match(JSON.stringify(await world.ctx.tools.execute(input)), /pictures cannot be shown here/)
  await world.store?.dispose()
  assert.equal((await world.call('a.png')).text, `Error: ${path} ${what}`)
})

test('a notebook is told as one', async () => {
  await using world = await setup()
  world.put('a.ipynb', '{}')
  assert.match(
    (await world.call('a.ipynb')).text,
    /\n1: \{\}\n\n\(end; 1 lines in all; a Jupyter notebook as its JSON\)/,
  )
})
