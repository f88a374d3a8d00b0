/** Sessions as files that leave the machine: what is in an export, what is taken out of it, and the way back in. */
export { ExportError } from './errors.ts'
export type { ExportErrorCode } from './errors.ts'
export { exportLines, readExport } from './jsonl.ts'
export type { ExportSource, PortableArtifact, PortableSession } from './jsonl.ts'
export { Redaction } from './redact.ts'
export type { RedactionOptions } from './redact.ts'
