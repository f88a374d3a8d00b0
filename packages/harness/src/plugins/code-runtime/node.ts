import { Script } from 'node:vm'
import { eraseTypes, host } from './env.ts'
import type { Argv, MemoryLimit, PreparedProgram, ProgramLanguage } from './language.ts'
import { NodeChild } from './node-child.ts'
import { parametersOf } from './namespaces.ts'
import type { NamespaceShape } from './namespaces.ts'

/** Flags that not every supported Node knows. Nothing is allowed on top of `--permission`. */
const optionalFlags = ['--disable-sigusr1', '--no-experimental-sqlite']

/** Looks like type arguments of a call, which also read as comparisons: what has it is taken for TypeScript. */
const typeArguments = /<[\s\S]*(?<!=)>\s*[(`]/

/** TypeScript and JavaScript in the Node that runs the harness. Types are erased; what needs more than that is refused. */
export const nodeLanguage: ProgramLanguage = {
  language: 'typescript',
  hasBigIntegers: false,

  prepare(program, shapes): PreparedProgram {
    const wrapped = wrap(program, shapes)
    // To load the eraser takes longer than to start the program.
    if (!typeArguments.test(program) && compileProblem(wrapped) === undefined) return { source: wrapped }
    const erased = erase(wrapped)
    if ('problem' in erased) return erased
    const problem = compileProblem(erased.source)
    return problem === undefined ? erased : { problem }
  },

  async argv(_subprocess, { memoryMb }: MemoryLimit): Promise<Argv> {
    const flags = optionalFlags.filter(host.knowsFlag)
    const heap = `--max-old-space-size=${memoryMb}`
    const main = `new (${String(NodeChild)})().listen()`
    return [host.node, '--permission', '--no-warnings', heap, ...flags, '-e', main]
  },

  // Beside the heap there are buffers, the code of Node itself and the stacks of its threads.
  memoryLimits: ({ memoryMb }) => [`-d ${(memoryMb * 2 + 512) * 1024}`],
}

/** A line more than the program has, at its beginning. */
function wrap(program: string, shapes: readonly NamespaceShape[]): string {
  return `(async function __dsh_main__(${parametersOf(shapes).join(', ')}) {'use strict';\n${program}\n})`
}

function compileProblem(source: string): string | undefined {
  try {
    return void new Script(source, { filename: 'program.ts', lineOffset: -1 })
  } catch (error) {
    return syntaxProblem(error as Error, 0)
  }
}

/** With the line, which stands in front of the stack alone. */
function syntaxProblem({ message, stack = '' }: Error, linesBefore: number): string {
  const at = /^(?:program\.ts)?:(\d+)\n/.exec(stack)
  const [text = ''] = message.split('\n', 1)
  return at === null ? `SyntaxError: ${text}` : `SyntaxError: ${text} (line ${Number(at[1]) - linesBefore})`
}

function erase(source: string): PreparedProgram {
  try {
    return { source: eraseTypes(source) }
  } catch (error) {
    return { problem: syntaxProblem(error as Error, 1) }
  }
}
