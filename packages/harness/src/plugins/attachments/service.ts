import type { ImageBlock } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import type { PictureFacts } from './picture.ts'

export interface ImageLimits {
  readonly maxImageBytes: number
  readonly maxImagePixels: number
  /** Of either side, in pixels. */
  readonly maxImageDimension: number
  readonly maxImagesPerMessage: number
  readonly maxMessageImageBytes: number
}

export type ImageRef = ImageBlock['attachment']

declare module '../../core/commands/index.ts' {
  /**
   * Pictures are kept in the artifacts of their session as they are: nothing is decoded, turned, scaled or stripped, so
   * what is admitted is what a provider gets. Everything fails with an `AttachmentError`.
   */
  interface Attachments {
    readonly imageLimits: ImageLimits
    /** What the bytes are, whatever a name says of them. */
    validateImage(bytes: Uint8Array): PictureFacts
    /** The block is for a message of the session. */
    saveImage(bytes: Uint8Array, session: Session): Promise<ImageBlock>
    /** All of them or none, within what one message may hold. */
    saveImages(images: readonly Uint8Array[], session: Session): Promise<readonly ImageBlock[]>
    /** The bytes, which are the picture that `ref` names. */
    readImage(ref: ImageRef, session: Session): Promise<Uint8Array>
  }
}
