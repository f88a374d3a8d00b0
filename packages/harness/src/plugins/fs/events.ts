import type { CallId } from '@dsh/protocol'

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /**
     * A call is about to put new bytes in place of a file; after a crash they tell whether it did. Hashes are SHA-256 in
     * hex of the bytes on disk, null where there was no file.
     */
    'fs/change': {
      readonly callId: CallId
      readonly path: string
      readonly before: string | null
      readonly after: string
    }
  }
}
