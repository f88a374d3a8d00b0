import { HarnessError } from '../../kernel/index.ts'

export type AttachmentErrorCode =
  /** Of one of the kinds that are taken, and broken or cut off. */
  | 'INVALID_IMAGE'
  /** Said to be of another kind than it is. */
  | 'IMAGE_TYPE_MISMATCH'
  | 'UNSUPPORTED_IMAGE_TYPE'
  | 'IMAGE_TOO_LARGE'
  | 'IMAGE_TOO_MANY_PIXELS'
  | 'IMAGE_DIMENSION_TOO_LARGE'
  | 'TOO_MANY_IMAGES'
  /** All of one message together. */
  | 'IMAGES_TOO_LARGE'
  | 'INVALID_IMAGE_BASE64'
  | 'INVALID_ATTACHMENT_REF'
  | 'ATTACHMENT_NOT_FOUND'
  /** What is kept is not the picture that the reference names. */
  | 'ATTACHMENT_CORRUPT'
  | 'ATTACHMENT_READ_FAILED'
  | 'ATTACHMENT_WRITE_FAILED'

/** Why a picture is not taken, kept or given. The message is for people and models. */
export class AttachmentError extends HarnessError<AttachmentErrorCode> {
  static {
    this.prototype.name = 'AttachmentError'
  }
}
