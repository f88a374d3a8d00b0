import { randomBytes } from 'node:crypto'
import { constants, openSync, rmSync } from 'node:fs'
import { chmod, copyFile, mkdir, unlink } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Subprocess } from '../subprocess/index.ts'

export interface PipePrograms {
  readonly bash: string
  readonly mkfifo: string
}

/** The two outputs of one command. */
export interface Pipe {
  readonly name: string
  readonly stdout: Socket
  readonly stderr: Socket
}

const firstBatch = 64
const laterBatch = 128
const lowWater = 48
const mkfifoLimitMs = 5000

/**
 * The folder that one sandbox shares with this program: named pipes, made in advance, and the bash it is run by.
 *
 * Within the sandbox it is read-only and cannot be listed, names are random, and one is gone as soon as a command has
 * it. That bash cannot be read, which is why the system lets nobody look into what runs it.
 */
export class Pipes {
  readonly folder: string
  readonly #subprocess: Subprocess
  readonly #programs: PipePrograms
  #names: string[] = []
  #filling: Promise<void> | undefined
  #isRemoved = false

  constructor(folder: string, subprocess: Subprocess, programs: PipePrograms) {
    this.folder = folder
    this.#subprocess = subprocess
    this.#programs = programs
  }

  async create(): Promise<void> {
    const bash = join(this.folder, 'bash')
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    await copyFile(this.#programs.bash, bash, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    await Promise.all([chmod(bash, 0o111), this.#fill(firstBatch)])
    await chmod(this.folder, 0o300)
  }

  /** Undefined where none is left right now. */
  take(): Pipe | undefined {
    if (this.#names.length < lowWater && this.#filling === undefined && !this.#isRemoved) {
      // Commands do without a pipe then, so that is all it costs.
      this.#filling = this.#fill(laterBatch).catch(() => {})
      void this.#filling.then(() => (this.#filling = undefined))
    }
    const name = this.#names.pop()
    return name === undefined
      ? undefined
      : { name, stdout: this.#open(`${name}.out`), stderr: this.#open(`${name}.err`) }
  }

  /** Nobody opens it by its name any more. */
  forget({ name }: Pipe): void {
    for (const end of ['out', 'err']) void unlink(join(this.folder, `${name}.${end}`)).catch(() => {})
  }

  async remove(): Promise<void> {
    this.#isRemoved = true
    await this.#filling
    await chmod(this.folder, 0o700).catch(() => {})
    rmSync(this.folder, { recursive: true, force: true })
  }

  async #fill(count: number): Promise<void> {
    const names = Array.from({ length: count }, () => randomBytes(12).toString('hex'))
    const files = names.flatMap(name => [`${name}.out`, `${name}.err`])
    const { done } = this.#subprocess.spawn({
      argv: [this.#programs.mkfifo, '-m', '600', '--', ...files],
      cwd: this.folder,
      stdin: 'ignore',
      stdout: { headBytes: 0, tailBytes: 0 },
      stderr: { headBytes: 0, tailBytes: 0 },
      graceMs: mkfifoLimitMs,
      drainMs: mkfifoLimitMs,
    })
    const { exitCode } = await done
    if (exitCode !== 0) throw new Error(`mkfifo ended with ${exitCode}`)
    this.#names.unshift(...names)
  }

  /** Without waiting for somebody who writes; before one came, there is no end either. */
  #open(file: string): Socket {
    const fd = openSync(join(this.folder, file), constants.O_RDONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: true, writable: false })
  }
}
