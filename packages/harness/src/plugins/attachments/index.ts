import { _default, int, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { SessionAttachments } from './local.ts'
import type { ImageLimits } from './service.ts'

export * from './errors.ts'
export * from './service.ts'
export { imageTypes, sniffImage } from './picture.ts'
export type { ImageType, PictureFacts } from './picture.ts'
export { SessionAttachments } from './local.ts'

export type AttachmentsConfig = ImageLimits

const count = (fallback: number) => _default(int().check(positive()), fallback)

const schema = () =>
  prefault(
    strictObject({
      maxImageBytes: count(5 * 2 ** 20),
      maxImagePixels: count(64_000_000),
      maxImageDimension: count(8000),
      maxImagesPerMessage: count(20),
      maxMessageImageBytes: count(20 * 2 ** 20),
    }),
    {},
  )

/**
 * Pictures that models see, as `ctx.attachments`: checked by their bytes, kept under their hash in the artifacts of their
 * session, named in the log and never held in it.
 *
 * Pictures go to providers as they are, since nothing here decodes them; the limits are therefore what the strictest of
 * the usual providers takes.
 */
export const attachments: PluginObject<input<ReturnType<typeof schema>>, AttachmentsConfig> = {
  name: 'attachments',
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: AttachmentsConfig) {
    ctx.provide('attachments', new SessionAttachments(config))
  },
}
