import type { Session } from '../../core/session/index.ts'
import type { Veto, Waterfall } from '../../kernel/index.ts'

declare const brand: unique symbol
type Opaque<Name extends string> = string & { readonly [brand]: Name }

/** Identity of a file; only the provider that made it may take it apart. Two spellings of one file have one key. */
export type FsTargetKey = Opaque<'FsTargetKey'>
/** Changes whenever the file does. Survives a restart of the harness. */
export type FsVersion = Opaque<'FsVersion'>

export interface FsTarget {
  readonly targetKey: FsTargetKey
  /** Absolute, as it was asked for: links are not resolved. */
  readonly displayPath: string
}

export type FsFileType = 'file' | 'directory' | 'other'

export interface FsInfo {
  readonly version: FsVersion
  readonly type: FsFileType
  /** Bytes; files only. */
  readonly size?: number
}

export interface FsPathInfo extends Omit<FsInfo, 'type'> {
  readonly type: FsFileType | 'symlink'
}

/** `version` is absent where the entry cannot be looked at, as with a broken link. */
export interface FsDirEntry {
  readonly name: string
  readonly type: FsFileType
  readonly target: FsTarget
  readonly version?: FsVersion
  readonly size?: number
}

export type FsWriteIntent =
  | { readonly kind: 'createIfAbsent' }
  | { readonly kind: 'replaceIfVersion'; readonly version: FsVersion }

export interface FsEditIntent {
  readonly version: FsVersion
}

/** The bytes on disk around one change, as SHA-256 in hex; `before` is null where there was no file. */
export interface FsChangeHashes {
  readonly before: string | null
  readonly after: string
}

/** Runs when the new bytes are staged and have not taken their place; a throw leaves the file as it is. */
export type ConfirmChange = (hashes: FsChangeHashes) => Promise<void>

export interface FsWriteOutcome {
  readonly operation: 'create' | 'update'
  readonly version: FsVersion
  /** LF line ends. Null when new, not text, or when either side is too large to compare. */
  readonly before: string | null
  readonly after: string
  readonly hashes: FsChangeHashes
  /** Further names of the replaced file, which keep its old content. */
  readonly otherLinks?: number
  /** The file belongs to whoever changed it now, since its owner could not be kept. */
  readonly ownerLost?: boolean
}

export interface FsEditRequest {
  /** Not empty. */
  readonly oldString: string
  readonly newString: string
  readonly replaceAll: boolean
}

/** How exactly the old text was found; line ends never count. */
export type FsEditMatch = 'exact' | 'trailing-space' | 'punctuation' | 'indentation'

export interface FsEditOutcome extends Omit<FsWriteOutcome, 'operation'> {
  /** Of the edit that was found least exactly. */
  readonly match: FsEditMatch
  /** Of all edits together. */
  readonly replacements: number
}

export type FsObservation =
  | { readonly kind: 'present'; readonly version: FsVersion }
  | { readonly kind: 'absent' }

/** On whose behalf a file is touched. */
export interface FsActor {
  readonly agent?: { readonly session: Session }
  /** Of the execution that touches it, which may have been granted more than its session has. */
  readonly token?: symbol
}

export interface FsResolveOptions {
  /** What relative paths start from; absolute. */
  readonly cwd?: string
  readonly signal?: AbortSignal
}

/**
 * The files of the execution world, wherever they live.
 *
 * Everything fails with an `FsError`. There are no time limits: a signal takes effect between two calls of the
 * system, never inside one, and a mutation it interrupts has either happened whole or not at all.
 */
export interface FileSystem {
  /** Fails with FS_NOT_FOUND for a blank path or one that leads through a file; a missing file has a target. */
  resolve(path: string, options?: FsResolveOptions): Promise<FsTarget>
  /** An absolute path under which processes of the same world find the file. */
  processPath(target: FsTarget): string
  fileUrl(target: FsTarget): string
  /** True for `parent` itself and everything below it. */
  contains(parent: FsTarget, child: FsTarget, signal?: AbortSignal): Promise<boolean>
  stat(target: FsTarget, signal?: AbortSignal): Promise<FsInfo | undefined>
  /** Does not follow a link at the end of `path`. */
  lstat(
    path: string,
    options?: { readonly cwd?: string },
    signal?: AbortSignal,
  ): Promise<FsPathInfo | undefined>
  /** The whole text without its byte order mark, line ends as they are. */
  readText(target: FsTarget, signal?: AbortSignal): Promise<string>
  /** The same piece by piece; a piece never ends inside a character. */
  streamText(target: FsTarget, signal?: AbortSignal): Promise<AsyncIterable<string>>
  /** Fails with FS_TOO_LARGE beyond `maxBytes`; never cuts. */
  readBytes(target: FsTarget, signal: AbortSignal | undefined, maxBytes: number): Promise<Uint8Array>
  /** In code-unit order of the names; reads no content. */
  listDir(target: FsTarget, signal?: AbortSignal): Promise<readonly FsDirEntry[]>
  /** Creates missing folders. Without `expected` whatever is there is replaced. */
  writeText(
    target: FsTarget,
    content: string,
    expected?: FsWriteIntent,
    signal?: AbortSignal,
    confirm?: ConfirmChange,
  ): Promise<FsWriteOutcome>
  /**
   * All of `edits` or none, at least one, each on the text that those before it made. The version is checked before
   * anything is looked for.
   */
  editText(
    target: FsTarget,
    edits: readonly FsEditRequest[],
    expected?: FsEditIntent,
    signal?: AbortSignal,
    confirm?: ConfirmChange,
  ): Promise<FsEditOutcome>
}

declare module '../../kernel/index.ts' {
  interface Services {
    fs: FileSystem
  }

  interface Events {
    /** `target` is about to be read, listed or searched for a model. A listener that lets it pass calls `next`. */
    'fs/read-intent': Waterfall<[target: FsTarget, actor: FsActor], Promise<void>>
    /** What must hold for `target` to be written; the first listener that answers does not call `next`. */
    'fs/write-intent': Waterfall<[target: FsTarget, actor: FsActor], Promise<FsWriteIntent | undefined>>
    /** The same for an edit. */
    'fs/edit-intent': Waterfall<[target: FsTarget, actor: FsActor], Promise<FsEditIntent | undefined>>
    /** An actor saw `target` so. A throw fails its tool call, though what it did stays done. */
    'fs/observed': Veto<[target: FsTarget, observation: FsObservation, actor: FsActor]>
  }
}
