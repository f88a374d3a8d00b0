import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, Function, Redirection, SyntaxNode, Word } from 'unbash'
import { assertNoGap, bodiesIn } from './gaps.ts'
import { isHidden } from './hidden.ts'
import type { ShellAssignment, ShellCommand, ShellRedirection } from './program.ts'
import { redirectionOf } from './redirection.ts'
import { runsInput, unwrap } from './unwrap.ts'
import { readWord } from './word.ts'
import type { ReadWord } from './word.ts'

export interface Collected {
  readonly commands: readonly ShellCommand[]
  readonly isComplete: boolean
}

type Place = Pick<ShellCommand, 'isPiped' | 'isSubstituted' | 'isBackground' | 'via'>

const topPlace: Place = { isPiped: false, isSubstituted: false, isBackground: false, via: [] }
const deepest = 24

/** Throws where `text` cannot be read as a whole. */
export function collect(text: string): Collected {
  const collector = new Collector()
  collector.read(text, topPlace, 0)
  return { commands: collector.commands(), isComplete: collector.isComplete }
}

class Collector {
  isComplete = true
  readonly #commands: ShellCommand[] = []
  readonly #functions = new Set<string>()

  /** A function may do anything under the name of a program; what it does stands in the list itself. */
  commands(): readonly ShellCommand[] {
    return this.#commands.map(command => {
      const [name, ...rest] = command.words
      const isFunction = name !== undefined && this.#functions.has(name)
      return isFunction ? { ...command, words: [undefined, ...rest] } : command
    })
  }

  read(text: string, place: Place, depth: number): void {
    if (depth > deepest) throw new RangeError('the program is nested too deeply')
    const script = parse(text)
    this.#visit(script, { place, depth, text, bodies: bodiesIn(script) })
  }

  #visit(node: SyntaxNode, outer: At): void {
    if (isHidden(node)) this.isComplete = false
    refuse(node)
    const at = within(outer, node)
    assertNoGap(node, at.text, at.bodies)
    switch (node.type) {
      case 'Function':
        this.#define(node)
        break
      case 'Redirected': {
        const redirections = node.redirects.map(each => redirectionOf(each))
        this.#add(at, { text: textOf(node, at), redirections })
        break
      }
      case 'For':
      case 'Select':
        this.#add(at, {
          text: textOf(node.name, at),
          assignments: [{ name: node.name.value, value: undefined }],
        })
        break
      case 'Command':
        this.#command(node, at)
        break
    }
    this.#children(node, at)
  }

  #children(node: SyntaxNode, at: At): void {
    forEachChild(node, child => this.#visit(child, at))
  }

  #define({ name }: Function): void {
    const { value } = readWord(name)
    if (value === undefined) throw new SyntaxError('a function has no plain name')
    this.#functions.add(value)
  }

  #command(node: Command, at: At): void {
    const args = node.suffix.filter(isArgument).map(each => argumentOf(each))
    const words = node.name === undefined ? args : [readWord(node.name), ...args]
    const simple = {
      text: textOf(node, at),
      assignments: node.prefix.filter(isAssignment).map(each => assignmentOf(each)),
      redirections: node.redirects.map(each => redirectionOf(each)),
    }
    this.#run({ words, ...simple }, at)
  }

  /** Lists a command, and what it is known to start. */
  #run(simple: Simple & { readonly words: readonly ReadWord[] }, at: At): void {
    if (at.depth > deepest) throw new RangeError('the program is nested too deeply')
    const { starts, isTransparent } = unwrap(simple.words)
    if (!isTransparent) this.#add(at, simple)
    const [name] = simple.words
    const inner = { ...placed(at, { via: [...at.place.via, name?.value ?? ''] }), depth: at.depth + 1 }
    if (runsInput(simple.words)) this.#readInput(simple, inner)
    for (const start of starts) {
      if (start.kind === 'text') this.#readInner(start.text, simple, inner)
      else
        this.#run(
          { ...simple, words: start.words, assignments: [...simple.assignments, ...start.assignments] },
          inner,
        )
    }
  }

  /** What stands in a here-document is expanded before it is run, so it need not be all. */
  #readInput({ redirections }: Simple, inner: At): void {
    for (const { text } of redirections) {
      if (text === undefined) continue
      if (/[$`\\]/.test(text)) this.isComplete = false
      this.read(text, inner.place, inner.depth)
    }
  }

  #readInner(text: string, simple: Simple, inner: At): void {
    // What surrounds it stays: the variables and files it is given.
    if (simple.assignments.length > 0 || simple.redirections.length > 0)
      this.#add(inner, { ...simple, words: [] })
    this.read(text, inner.place, inner.depth)
  }

  #add(
    at: At,
    {
      words = [],
      text,
      assignments = [],
      redirections = [],
    }: Partial<Simple> & { readonly text: string; readonly words?: readonly ReadWord[] },
  ): void {
    this.#commands.push({
      text,
      words: words.map(({ value }) => value),
      stems: words.map(({ stem }) => stem),
      assignments,
      redirections,
      ...at.place,
    })
  }
}

interface At {
  readonly place: Place
  readonly depth: number
  /** What positions count in. */
  readonly text: string
  /** Of here-documents in it. */
  readonly bodies: ReturnType<typeof bodiesIn>
}

interface Simple {
  readonly text: string
  readonly assignments: readonly ShellAssignment[]
  readonly redirections: readonly ShellRedirection[]
}

/** Throws where `node` is not surely what the shell would make of it. */
function refuse(node: SyntaxNode): void {
  switch (node.type) {
    case 'Script': {
      const [error] = node.errors ?? []
      if (error !== undefined) throw new SyntaxError(error.message)
      break
    }
    case 'ExtendedGlob':
      throw new SyntaxError('the shell that runs it has no extended patterns')
    case 'CommandExpansion':
    case 'ProcessSubstitution':
    case 'ArithmeticCommandExpansion':
      if (node.script === undefined) throw new SyntaxError('a substitution cannot be read')
  }
}

/** Where that stands which `node` holds. */
function within(at: At, node: SyntaxNode): At {
  switch (node.type) {
    case 'Script':
      // What stands between backticks and has escapes is a text of its own.
      return node.source === undefined ? at : { ...at, text: node.source, bodies: bodiesIn(node) }
    case 'Statement':
      return node.background === true ? placed(at, { isBackground: true }) : at
    case 'Pipeline':
      return node.commands.length > 1 ? placed(at, { isPiped: true }) : at
    case 'Coproc':
      return placed(at, { isBackground: true, isPiped: true })
    case 'CommandExpansion':
    case 'ProcessSubstitution':
    case 'ArithmeticCommandExpansion':
      return placed(at, { isSubstituted: true })
    default:
      return at
  }
}

function placed(at: At, place: Partial<Place>): At {
  return { ...at, place: { ...at.place, ...place } }
}

function textOf({ pos, end }: SyntaxNode, { text }: At): string {
  return text.slice(pos, end)
}

function isAssignment(node: Assignment | Redirection): node is Assignment {
  return node.type === 'Assignment'
}

function isArgument(node: Word | Assignment | Redirection): node is Word | Assignment {
  return node.type === 'Word' || node.type === 'Assignment'
}

function argumentOf(node: Word | Assignment): ReadWord {
  if (node.type === 'Word') return readWord(node)
  const { name, value } = assignmentOf(node)
  const stem = `${name}=`
  return value === undefined ? { value, stem } : { value: stem + value, stem: stem + value }
}

function assignmentOf({ name, value, append, index }: Assignment): ShellAssignment {
  const isPlain = value.type === 'Word' && append !== true && index === undefined
  return { name, value: isPlain ? readWord(value).value : undefined }
}
