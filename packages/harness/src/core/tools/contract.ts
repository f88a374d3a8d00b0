import type { JsonValue } from '@dsh/protocol'
import type { JsonRecord } from './schema.ts'

export type Checked =
  | { readonly value: unknown; readonly violations?: undefined }
  | { readonly violations: readonly string[] }

/** What a schema says, whichever way it was written. */
export interface Contract {
  /** Made when it is first read. Throws where the schema cannot be said in JSON. */
  readonly schema: JsonRecord
  /** A promise only where the schema needs one: a foreign one whose checker is still to be loaded, an async zod check. */
  check(value: JsonValue, root: string): Checked | Promise<Checked>
}
