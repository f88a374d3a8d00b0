import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { constants, openSync, readlinkSync } from 'node:fs'
import { closeSync, fstatSync, readSync } from 'node:fs'
import { RewindError } from './errors.ts'
import type { Git } from './git.ts'
import { callPath, quotedPath } from './paths.ts'
import type { RawPath } from './paths.ts'
import { lookOf } from './walk.ts'
import type { Look } from './walk.ts'

/** A file as it was read: what was looked at before the first byte, and all bytes. */
export interface FileContent {
  readonly look: Look
  readonly kind: '100644' | '100755' | '120000'
  readonly oid: string
  readonly bytes: Buffer
}

export type ReadProblem = 'gone' | 'unreadable' | 'too-large' | 'special'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
const openFlags = O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0)
const linkBits = 0o120000
const kindBits = 0o170000

/** Reads what stands at `path` now, without following a link. `seen` is what a walk saw there. */
export function readContent(
  root: RawPath,
  path: RawPath,
  { seen, maxBytes }: { readonly seen: Look; readonly maxBytes: number },
): FileContent | ReadProblem {
  try {
    if ((seen.mode & kindBits) === linkBits) return readLink(root, path, seen)
    const file = openSync(callPath(root, path), openFlags)
    try {
      return readOpen(file, maxBytes)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'gone'
    return code === 'ELOOP' || code === 'ENXIO' || code === 'EINVAL' ? 'special' : 'unreadable'
  }
}

function readLink(root: RawPath, path: RawPath, look: Look): FileContent {
  const bytes = readlinkSync(callPath(root, path), { encoding: 'buffer' })
  return { look, kind: '120000', oid: oidOf(bytes), bytes }
}

function readOpen(file: number, maxBytes: number): FileContent | ReadProblem {
  const stats = fstatSync(file)
  if (!stats.isFile()) return 'special'
  if (stats.size > maxBytes) return 'too-large'
  const look = lookOf(stats)
  const kind = (stats.mode & 0o100) === 0 ? '100644' : '100755'
  // One byte more than it had: a file that grows meanwhile is seen to.
  let bytes = Buffer.allocUnsafe(stats.size + 1)
  let length = 0
  for (;;) {
    const count = readSync(file, bytes, length, bytes.length - length, null)
    if (count === 0) break
    length += count
    if (length > maxBytes) return 'too-large'
    if (length === bytes.length) bytes = Buffer.concat([bytes, Buffer.allocUnsafe(bytes.length)])
  }
  const whole = bytes.subarray(0, length)
  return { look, kind, oid: oidOf(whole), bytes: whole }
}

/** The name that git gives the content. */
export function oidOf(bytes: Uint8Array): string {
  return createHash('sha1').update(`blob ${bytes.byteLength}\0`).update(bytes).digest('hex')
}

export type TreeEdit =
  | { readonly path: RawPath; readonly content: FileContent }
  | { readonly path: RawPath; readonly content?: undefined }

export interface CommitOrder {
  /** The tree that the edits are made to; nothing where absent. */
  readonly baseTree: string | undefined
  readonly parent: string | undefined
  /** Points to the new commit afterwards. */
  readonly ref: string
  readonly message: string
  /** Deletions first: a folder may take the place of a file. */
  readonly edits: AsyncIterable<TreeEdit>
  /** Asked for when all edits are through. */
  facts(): string
  readonly signal: AbortSignal
}

export interface Commit {
  readonly commit: string
  readonly tree: string
}

/** Makes one commit, in one process; either the commit is there and durable with its ref, or nothing is. */
export async function makeCommit(git: Git, order: CommitOrder): Promise<Commit> {
  const input = streamOf(order)
  const args = ['fast-import', '--quiet', '--force', '--done', '--date-format=raw']
  const output = (await git.run(args, { input, signal: order.signal })).toString('latin1')
  const [, commit, tree] = /^([0-9a-f]{40})\n040000 tree ([0-9a-f]{40})\t/.exec(output) ?? []
  if (commit === undefined || tree === undefined)
    throw new RewindError('GIT_FAILED', `git fast-import gave ${JSON.stringify(output)}`)
  return { commit, tree }
}

async function* streamOf(order: CommitOrder): AsyncIterable<string | Uint8Array> {
  const { baseTree, parent, ref, message, edits } = order
  const seconds = Math.floor(Date.now() / 1000)
  yield `commit ${ref}\nmark :1\ncommitter dsh <dsh@localhost> ${seconds} +0000\n`
  yield data(Buffer.from(message, 'utf8'))
  yield parent === undefined ? '' : `from ${parent}\n`
  yield baseTree === undefined ? 'deleteall\n' : `M 040000 ${baseTree} ""\n`
  for await (const { path, content } of edits) {
    const name = quotedPath(`files/${path}`)
    if (content === undefined) {
      yield `D ${name}\n`
      continue
    }
    yield `M ${content.kind} inline ${name}\ndata ${content.bytes.byteLength}\n`
    yield content.bytes
    yield '\n'
  }
  yield 'M 100644 inline facts.json\n'
  yield data(Buffer.from(order.facts(), 'utf8'))
  yield `\nget-mark :1\nls :1 ""\ndone\n`
}

function data(bytes: Buffer): string {
  // Latin-1 would not do: the length counts bytes.
  return `data ${bytes.byteLength}\n${bytes.toString('utf8')}\n`
}
