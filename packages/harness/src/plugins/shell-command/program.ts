/** A variable that a command, or the shell from there on, is given. */
export interface ShellAssignment {
  readonly name: string
  /** Undefined where only the shell can know it. */
  readonly value: string | undefined
}

export type ShellRedirectionKind = 'read' | 'write' | 'append' | 'both' | 'duplicate' | 'text'

export interface ShellRedirection {
  /** `both` opens for reading and writing; `duplicate` copies a descriptor; `text` is a here-document or here-string. */
  readonly kind: ShellRedirectionKind
  /** The path or, where it is one, the descriptor. Undefined where only the shell can know it. */
  readonly target: string | undefined
  /** What the path surely begins with. */
  readonly stem: string
  /** Of a here-document or here-string, as it is written: what is expanded in it stands as it is. */
  readonly text?: string
}

/** One simple command, wherever it stands in a program. */
export interface ShellCommand {
  /** As it is written. */
  readonly text: string
  /**
   * The program and what it is given; undefined for a word that only the shell can know, which may become none or
   * several. Without any, only variables are set or files opened.
   */
  readonly words: readonly (string | undefined)[]
  /** What each word, and all that become of it, surely begin with; '' where nothing is sure. */
  readonly stems: readonly string[]
  readonly assignments: readonly ShellAssignment[]
  readonly redirections: readonly ShellRedirection[]
  /** The programs that start it, such as `timeout` or `sudo`, the outermost first. */
  readonly via: readonly string[]
  /** One end of a pipe at least is not the shell's own input or output. */
  readonly isPiped: boolean
  /** Its output becomes words or a file of another command. */
  readonly isSubstituted: boolean
  /** Nothing waits for it. */
  readonly isBackground: boolean
}

/** What a shell would run. */
export interface ShellProgram {
  readonly text: string
  /** In the order in which they are written; what a command starts follows it. */
  readonly commands: readonly ShellCommand[]
  /** Whether nothing can run but `commands`: false where a value that is only known later is code. */
  readonly isComplete: boolean
}

/** Every simple command of `program`, also within substitutions, functions, and commands that start others. */
export function commandsOf(program: ShellProgram): readonly ShellCommand[] {
  return program.commands
}

/** The name a program is known by, without the folder it lies in. */
export function programOf({ words: [first] }: ShellCommand): string | undefined {
  return first?.slice(first.lastIndexOf('/') + 1)
}
