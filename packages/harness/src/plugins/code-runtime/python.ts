import type { Subprocess } from '../subprocess/index.ts'
import type { Argv, MemoryLimit, ProgramLanguage } from './language.ts'
import { pythonChild } from './python-child.ts'

/**
 * Python by the `python3` of the PATH, without its environment, the user's packages and byte code on disk.
 *
 * Unlike Node it fences nothing off by itself: what a program can reach is what the sandbox lets it reach.
 */
export const pythonLanguage: ProgramLanguage = {
  language: 'python',
  hasBigIntegers: true,
  // Whether it is a program, Python alone can say.
  prepare: program => ({ source: program }),
  async argv(subprocess: Subprocess): Promise<Argv> {
    const python = await subprocess.resolveExecutable('python3')
    return [python, '-I', '-S', '-B', '-X', 'utf8', '-c', pythonChild]
  },
  memoryLimits: ({ memoryMb }: MemoryLimit) => [`-v ${(memoryMb + 512) * 1024}`],
}
