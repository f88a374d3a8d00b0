import type { ImageBlock } from '@dsh/protocol'
import type { ToolRunContext } from '../../../core/tools/index.ts'
import { HarnessError } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type {} from '../../attachments/index.ts'
import { binaryKind } from '../binary.ts'
import { FsError } from '../errors.ts'
import type { FsInfo, FsTarget } from '../service.ts'

export const imageSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    sha256: { type: 'string', required: true },
    mediaType: { type: 'string', required: true },
    bytes: { type: 'integer', required: true },
    width: { type: 'integer' },
    height: { type: 'integer' },
  },
} as const

/** Bytes that are read of a file that is no text, to tell what it is, where pictures cannot be shown. */
const maxLookedAt = 64 * 1024

/**
 * The picture that a file which is no text holds, kept with the session. For every other file it throws `notText`, in
 * the words of what the file is where that can be told.
 */
export async function pictureIn(
  ctx: Context,
  file: { readonly target: FsTarget; readonly info: FsInfo; readonly notText: FsError },
  exec: ToolRunContext,
): Promise<ImageBlock['attachment']> {
  const { target, info, notText } = file
  const store = ctx.get('attachments')
  const session = exec.agent?.session
  const size = info.size ?? 0
  const canShow = store !== undefined && session !== undefined
  const maxBytes = canShow ? store.imageLimits.maxImageBytes : maxLookedAt
  if (canShow && size > maxBytes && isNamedPicture(target)) {
    const text = `${target.displayPath} has ${size} bytes, and pictures of at most ${maxBytes} can be shown; make it smaller first`
    throw new HarnessError('IMAGE_TOO_LARGE', text, { cause: notText })
  }
  if (size > maxBytes) throw named(file)
  const bytes = await ctx.fs.readBytes(target, exec.signal, maxBytes)
  if (!canShow) throw named(file, bytes)
  try {
    return (await store.saveImage(bytes, session)).attachment
  } catch (error) {
    throw (error as { code?: unknown }).code === 'UNSUPPORTED_IMAGE_TYPE' ? named(file, bytes) : error
  }
}

function isNamedPicture({ displayPath }: FsTarget): boolean {
  return /\.(png|jpe?g|webp|gif)$/i.test(displayPath)
}

function named(file: { readonly target: FsTarget; readonly notText: FsError }, bytes?: Uint8Array): FsError {
  const { displayPath } = file.target
  const kind = binaryKind(displayPath, bytes) ?? (bytes && binaryKind(displayPath))
  if (kind === undefined) return file.notText
  return new FsError('FS_NOT_TEXT', `${displayPath} is ${kind}`, { cause: file.notText })
}
