import type { ImageBlock } from '@dsh/protocol'
import type { Session } from '../session/index.ts'

/** A picture as it comes over a wire. */
export interface EncodedImage {
  /** Base64 in its one canonical form. */
  readonly data: string
  readonly mediaType: string
  readonly name?: string
}

/** Keeps pictures; a plugin provides it as `ctx.attachments`. Plugins merge the rest of what they offer in. */
export interface Attachments {
  /** Checks and stores all of them or none. Rejects with what a person may read. */
  admitEncodedImages(
    images: readonly EncodedImage[],
    options: { readonly session: Session; readonly signal: AbortSignal },
  ): Promise<readonly ImageBlock[]>
}

declare module '../../kernel/index.ts' {
  interface Services {
    attachments: Attachments
  }
}
