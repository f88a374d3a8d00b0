import type { Subprocess } from '../subprocess/index.ts'
import type { NamespaceShape } from './namespaces.ts'
import type { CodeLanguage } from './service.ts'

export type Argv = readonly [program: string, ...args: string[]]

/** What becomes of a program before its process is started: the text to run, or why it is none. */
export type PreparedProgram = { readonly source: string } | { readonly problem: string }

export interface MemoryLimit {
  readonly memoryMb: number
}

/** How programs of one language are made ready and run; all speak the protocol of `frames.ts`. */
export interface ProgramLanguage {
  readonly language: CodeLanguage
  /** Whether a whole number of JSON may be one that JavaScript cannot hold. */
  readonly hasBigIntegers: boolean
  prepare(program: string, shapes: readonly NamespaceShape[]): PreparedProgram
  /** Throws PROGRAM_NOT_FOUND where the language is not installed. */
  argv(subprocess: Subprocess, limit: MemoryLimit): Promise<Argv>
  /** Options of `ulimit` that bound memory. */
  memoryLimits(limit: MemoryLimit): readonly string[]
}
