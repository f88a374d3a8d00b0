import { createHash } from 'node:crypto'
import type { ImageBlock } from '@dsh/protocol'
import type { Attachments, EncodedImage } from '../../core/commands/index.ts'
import type { Session } from '../../core/session/index.ts'
import { decodeBase64 } from './base64.ts'
import { AttachmentError } from './errors.ts'
import { imageTypes, readPicture } from './picture.ts'
import type { PictureFacts } from './picture.ts'
import type { ImageLimits, ImageRef } from './service.ts'

/** Pictures in the artifacts of their sessions. */
export class SessionAttachments implements Attachments {
  readonly imageLimits: ImageLimits

  constructor(limits: ImageLimits) {
    this.imageLimits = limits
  }

  validateImage(bytes: Uint8Array): PictureFacts {
    const { maxImageBytes, maxImagePixels, maxImageDimension } = this.imageLimits
    if (bytes.length > maxImageBytes) {
      const text = `the picture has ${bytes.length} bytes, at most ${maxImageBytes} can be shown; make it smaller first`
      throw new AttachmentError('IMAGE_TOO_LARGE', text)
    }
    const facts = readPicture(bytes)
    if (facts === undefined)
      throw new AttachmentError('UNSUPPORTED_IMAGE_TYPE', `only ${imageTypes.join(', ')} can be shown`)
    if ('broken' in facts)
      throw new AttachmentError(
        'INVALID_IMAGE',
        `the picture begins as ${facts.broken} and is broken or cut off`,
      )
    const { width, height } = facts
    if (Math.max(width, height) > maxImageDimension) {
      const text = `the picture has ${width}×${height} pixels, a side may have ${maxImageDimension}; make it smaller first`
      throw new AttachmentError('IMAGE_DIMENSION_TOO_LARGE', text)
    }
    if (width * height > maxImagePixels) {
      const text = `the picture has ${width}×${height} pixels, ${maxImagePixels} in all can be shown; make it smaller first`
      throw new AttachmentError('IMAGE_TOO_MANY_PIXELS', text)
    }
    return facts
  }

  async saveImage(bytes: Uint8Array, session: Session): Promise<ImageBlock> {
    const facts = this.validateImage(bytes)
    try {
      const { sha256 } = await session.artifacts.put(bytes, facts.mediaType)
      return { type: 'image', attachment: { sha256, bytes: bytes.length, ...facts } }
    } catch (cause) {
      throw new AttachmentError('ATTACHMENT_WRITE_FAILED', 'the picture could not be kept', { cause })
    }
  }

  async saveImages(images: readonly Uint8Array[], session: Session): Promise<readonly ImageBlock[]> {
    const { maxImagesPerMessage, maxMessageImageBytes } = this.imageLimits
    if (images.length > maxImagesPerMessage) {
      const text = `${images.length} pictures are too many for one message; it may hold ${maxImagesPerMessage}`
      throw new AttachmentError('TOO_MANY_IMAGES', text)
    }
    const bytes = images.reduce((sum, image) => sum + image.length, 0)
    if (bytes > maxMessageImageBytes) {
      const text = `the pictures have ${bytes} bytes together, a message may hold ${maxMessageImageBytes}`
      throw new AttachmentError('IMAGES_TOO_LARGE', text)
    }
    for (const image of images) this.validateImage(image)
    return await Promise.all(images.map(image => this.saveImage(image, session)))
  }

  async admitEncodedImages(
    images: readonly EncodedImage[],
    { session, signal }: { readonly session: Session; readonly signal: AbortSignal },
  ): Promise<readonly ImageBlock[]> {
    const decoded = images.map((image, index) => {
      const called = image.name === undefined ? `picture ${index + 1}` : `"${image.name}"`
      const bytes = decodeBase64(image.data, this.imageLimits.maxImageBytes)
      if (bytes === undefined)
        throw new AttachmentError(
          'INVALID_IMAGE_BASE64',
          `${called} is not sound base64 of a picture that is small enough`,
        )
      const { mediaType } = this.validateImage(bytes)
      if (mediaType !== image.mediaType) {
        const text = `${called} is said to be ${image.mediaType} and is ${mediaType}`
        throw new AttachmentError('IMAGE_TYPE_MISMATCH', text)
      }
      return bytes
    })
    signal.throwIfAborted()
    return await this.saveImages(decoded, session)
  }

  async readImage(ref: ImageRef, session: Session): Promise<Uint8Array> {
    const { sha256, mediaType, width, height } = ref
    if (!/^[0-9a-f]{64}$/.test(sha256))
      throw new AttachmentError('INVALID_ATTACHMENT_REF', `"${sha256}" names no picture`)
    const bytes = await session.artifacts.get(sha256).catch((cause: unknown) => {
      throw new AttachmentError('ATTACHMENT_READ_FAILED', `picture ${sha256} could not be read`, { cause })
    })
    if (bytes === undefined)
      throw new AttachmentError('ATTACHMENT_NOT_FOUND', `picture ${sha256} is not in this session`)
    const facts = readPicture(bytes)
    const isSame =
      createHash('sha256').update(bytes).digest('hex') === sha256 &&
      facts !== undefined &&
      'mediaType' in facts &&
      facts.mediaType === mediaType &&
      facts.width === (width ?? facts.width) &&
      facts.height === (height ?? facts.height)
    if (isSame) return bytes
    throw new AttachmentError('ATTACHMENT_CORRUPT', `picture ${sha256} is not the one that the session names`)
  }
}
