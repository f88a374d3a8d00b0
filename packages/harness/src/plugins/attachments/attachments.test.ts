import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { Session } from '../../core/session/index.ts'
import { createHarness } from '../../testing/index.ts'
import { gif, jpeg, pictures, png, webp, webpExtended, webpLossless } from '../../testing/pictures.ts'
import { attachments } from './index.ts'
import type { AttachmentsConfig } from './index.ts'

async function setup(config: Partial<AttachmentsConfig> = {}) {
  const { ctx } = await createHarness([])
  const plugin = ctx.plugin(attachments, config)
  await plugin
  return { ctx, plugin, store: ctx.attachments, session: Session.create(SessionId('s')) }
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

test('the four kinds of pictures are told by their bytes, with their size', async () => {
  const { store } = await setup()
  const cases = { 'image/png': png, 'image/jpeg': jpeg, 'image/gif': gif, 'image/webp': webp }
  for (const [mediaType, make] of Object.entries(cases))
    assert.deepEqual(store.validateImage(make(820, 582)), { mediaType, width: 820, height: 582 })
  for (const make of [webpLossless, webpExtended])
    assert.deepEqual(store.validateImage(make(820, 582)), {
      mediaType: 'image/webp',
      width: 820,
      height: 582,
    })
})

test('a picture that is cut off anywhere, or has no size, is told as broken', async () => {
  const { store } = await setup()
  for (const make of [png, jpeg, gif, webp, webpLossless, webpExtended]) {
    const whole = make(30, 20)
    for (let length = 12; length < whole.length; length++) {
      const cut = whole.subarray(0, length)
      assert.throws(() => store.validateImage(cut), { code: 'INVALID_IMAGE' }, `${make.name} at ${length}`)
    }
    if (make !== webpLossless && make !== webpExtended)
      assert.throws(() => store.validateImage(make(0, 20)), { code: 'INVALID_IMAGE' }, make.name)
  }
  const flipped = png(30, 20)
  flipped[17] = 1
  assert.throws(() => store.validateImage(flipped), {
    code: 'INVALID_IMAGE',
    message: 'the picture begins as image/png and is broken or cut off',
  })
})

test('each limit refuses with its own code, and lets through what is just within', async () => {
  const { store } = await setup({ maxImageBytes: 200, maxImagePixels: 1000, maxImageDimension: 100 })
  assert.throws(() => store.validateImage(Buffer.alloc(201)), {
    code: 'IMAGE_TOO_LARGE',
    message: 'the picture has 201 bytes, at most 200 can be shown; make it smaller first',
  })
  assert.throws(() => store.validateImage(png(101, 1)), {
    code: 'IMAGE_DIMENSION_TOO_LARGE',
    message: 'the picture has 101×1 pixels, a side may have 100; make it smaller first',
  })
  assert.throws(() => store.validateImage(png(100, 11)), {
    code: 'IMAGE_TOO_MANY_PIXELS',
    message: 'the picture has 100×11 pixels, 1000 in all can be shown; make it smaller first',
  })
  assert.throws(() => store.validateImage(Buffer.from('%PDF-1.7')), {
    code: 'UNSUPPORTED_IMAGE_TYPE',
    message: 'only image/png, image/jpeg, image/webp, image/gif can be shown',
  })
  assert.equal(store.validateImage(png(100, 10)).width, 100)
})

test('a picture is kept once under its hash and given back as it was', async () => {
  const { store, session } = await setup()
  const bytes = png(3, 2)
  const block = await store.saveImage(bytes, session)
  const attachment = {
    sha256: sha256(bytes),
    mediaType: 'image/png',
    bytes: bytes.length,
    width: 3,
    height: 2,
  }
  assert.deepEqual(block, { type: 'image', attachment })
  assert.deepEqual(await store.saveImage(bytes, session), block)
  assert.deepEqual(Buffer.from(await store.readImage(attachment, session)), bytes)
})

test('several pictures of one message are kept together or not at all', async () => {
  const { store, session } = await setup({ maxImagesPerMessage: 2, maxMessageImageBytes: 200 })
  const saved = await store.saveImages([png(1, 1), gif(2, 2)], session)
  assert.deepEqual(
    saved.map(({ attachment }) => attachment.mediaType),
    ['image/png', 'image/gif'],
  )
  await assert.rejects(store.saveImages([png(1, 1), png(1, 2), png(1, 3)], session), {
    code: 'TOO_MANY_IMAGES',
    message: '3 pictures are too many for one message; it may hold 2',
  })
  await assert.rejects(store.saveImages([Buffer.alloc(100), Buffer.alloc(101)], session), {
    code: 'IMAGES_TOO_LARGE',
    message: 'the pictures have 201 bytes together, a message may hold 200',
  })
  const good = png(7, 7)
  await assert.rejects(store.saveImages([good, Buffer.from('no')], session), {
    code: 'UNSUPPORTED_IMAGE_TYPE',
  })
  assert.equal(await session.artifacts.get(sha256(good)), undefined)
})

test('a picture from a wire is taken in canonical base64 of the kind that is named, and nothing else', async () => {
  const { store, session } = await setup()
  const signal = new AbortController().signal
  const admit = (data: string, mediaType = 'image/png', name?: string) =>
    store.admitEncodedImages([{ data, mediaType, ...(name !== undefined && { name }) }], { session, signal })
  const data = png(3, 2).toString('base64')
  assert.equal((await admit(data))[0]?.attachment.width, 3)
  for (const bad of [`${data}\n`, data.replace(/.$/, ''), `${data} `, '!!', `data:image/png;base64,${data}`])
    await assert.rejects(admit(bad, 'image/png', 'a.png'), {
      code: 'INVALID_IMAGE_BASE64',
      message: '"a.png" is not sound base64 of a picture that is small enough',
    })
  await assert.rejects(admit(data, 'image/jpeg'), {
    code: 'IMAGE_TYPE_MISMATCH',
    message: 'picture 1 is said to be image/jpeg and is image/png',
  })
})

test('a reference that does not name what is kept is told, each in its own way', async () => {
  const { store, session } = await setup()
  const { attachment } = await store.saveImage(png(3, 2), session)
  const rejects = (change: object, code: string) =>
    assert.rejects(store.readImage({ ...attachment, ...change }, session), { code })
  await rejects({ sha256: '../x' }, 'INVALID_ATTACHMENT_REF')
  await rejects({ sha256: 'f'.repeat(64) }, 'ATTACHMENT_NOT_FOUND')
  await rejects({ width: 4 }, 'ATTACHMENT_CORRUPT')
  await rejects({ mediaType: 'image/gif' }, 'ATTACHMENT_CORRUPT')
  const text = await session.artifacts.put(Buffer.from('text'), 'text/plain')
  await rejects({ sha256: text.sha256 }, 'ATTACHMENT_CORRUPT')
})

test('a store that is full or broken is told as what it is', async () => {
  const { store, session } = await setup()
  const { attachment } = await store.saveImage(png(3, 2), session)
  const fail = async (): Promise<never> => {
    throw new Error('the disk is full')
  }
  const other = Session.create(SessionId('other'))
  await other.artifacts.attach({ put: fail, get: fail }).moved
  await assert.rejects(store.saveImage(png(1, 1), other), { code: 'ATTACHMENT_WRITE_FAILED' })
  await assert.rejects(store.readImage(attachment, other), { code: 'ATTACHMENT_READ_FAILED' })
})

test('the store goes with its plugin, and no random bytes make it fail otherwise', async () => {
  const { ctx, plugin, store } = await setup()
  for (const picture of pictures)
    for (let at = 0; at < picture.length; at++) {
      const changed = Buffer.from(picture)
      changed[at] = 0xff - (changed[at] ?? 0)
      try {
        store.validateImage(changed)
      } catch (error) {
        assert.equal((error as Error).name, 'AttachmentError')
      }
    }
  await plugin.dispose()
  assert.equal(ctx.get('attachments'), undefined)
})
