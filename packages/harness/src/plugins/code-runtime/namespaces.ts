import { isFields } from '../../kernel/index.ts'
import type { CodeNamespace } from './service.ts'

type BoundFunction = CodeNamespace['functions'][string]

/** What the process of a program is told of a namespace. */
export interface NamespaceShape {
  readonly global: string
  readonly functions: readonly string[]
  readonly errorClass?: { readonly name: string; readonly memberNameProperty: string }
}

/** Namespaces as they were when the run began. */
export interface Bindings {
  readonly shapes: readonly NamespaceShape[]
  find(global: string, name: string): BoundFunction | undefined
}

const identifier = /^[A-Za-z_]\w*$/

/** Of JavaScript and Python alike, so that the same bindings suit either language. */
const reserved = new Set(
  [
    'await break case catch class const continue debugger default delete do else enum export extends false finally',
    'for function if implements import in instanceof interface let new null package private protected public return',
    'static super switch this throw true try typeof var void while with yield arguments eval undefined NaN Infinity',
    'and as assert async def del elif except exec from global is lambda match nonlocal not or pass print raise type',
    'False None True console __dsh_main__ __builtins__ __name__ __debug__',
  ].flatMap(words => words.split(' ')),
)

/** What errors have in either language anyway. */
const ownOfErrors = new Set(['name', 'message', 'stack', 'args', 'with_traceback', 'add_note'])

/** Reads `namespaces` once. Throws a TypeError for what could not be bound. */
export function readBindings(namespaces: readonly CodeNamespace[]): Bindings {
  const taken = new Set<string>()
  const functions = new Map<string, ReadonlyMap<string, BoundFunction>>()
  const shapes = namespaces.map(({ global, functions: given, errorClass }): NamespaceShape => {
    claim(global, taken)
    const bound = readFunctions(given, global)
    functions.set(global, bound)
    const shape = { global, functions: [...bound.keys()] }
    if (errorClass === undefined) return shape
    const { name, memberNameProperty } = errorClass
    claim(name, taken)
    assertMember(memberNameProperty)
    return { ...shape, errorClass: { name, memberNameProperty } }
  })
  return { shapes, find: (global, name) => functions.get(global)?.get(name) }
}

function claim(name: unknown, taken: Set<string>): void {
  if (typeof name !== 'string' || !identifier.test(name) || reserved.has(name))
    throw new TypeError(`${JSON.stringify(name)} cannot be the name of something in a program`)
  if (taken.has(name)) throw new TypeError(`the name "${name}" is bound twice`)
  taken.add(name)
}

function readFunctions(given: unknown, global: string): ReadonlyMap<string, BoundFunction> {
  if (!isFields(given)) throw new TypeError(`the functions of "${global}" are no object`)
  const bound = new Map<string, BoundFunction>()
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'function')
      throw new TypeError(`${JSON.stringify(name)} of "${global}" is no function`)
    bound.set(name, value as BoundFunction)
  }
  return bound
}

function assertMember(name: unknown): void {
  const isFree = typeof name === 'string' && identifier.test(name) && !reserved.has(name)
  if (!isFree || ownOfErrors.has(name) || (name.startsWith('__') && name.endsWith('__')))
    throw new TypeError(`${JSON.stringify(name)} cannot be a property of an error`)
}

/** The names that a program finds, in the order in which its process makes them. */
export function parametersOf(shapes: readonly NamespaceShape[]): readonly string[] {
  return shapes.flatMap(({ global, errorClass }) => [global, ...(errorClass ? [errorClass.name] : [])])
}
