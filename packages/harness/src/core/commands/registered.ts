import type { CommandDefinition, CommandDescriptor, CommandInvocation, CommandResult } from './command.ts'

const validName = /^[a-z][a-z0-9_-]*$/

/** One command as it was at registration: each part read once, and checked. */
export class RegisteredCommand {
  readonly descriptor: CommandDescriptor
  readonly recordsInput: boolean
  readonly #handler: CommandDefinition['handler']

  /** Throws a TypeError for what could not be called or shown later. */
  constructor(definition: CommandDefinition) {
    const { name, description, input, recordInput = true, handler } = definition
    if (typeof name !== 'string' || !validName.test(name)) {
      throw new TypeError(
        `${JSON.stringify(name)} cannot be the name of a command: write it like "my-command"`,
      )
    }
    if (typeof description !== 'string' || description.trim() === '') {
      throw new TypeError(`command "${name}" has no description`)
    }
    if (typeof handler !== 'function') throw new TypeError(`command "${name}" has no handler`)
    if (input !== undefined && typeof input.hint !== 'string') {
      throw new TypeError(`the input of command "${name}" has no hint`)
    }
    this.descriptor = Object.freeze({
      name,
      description,
      ...(input === undefined ? {} : { input: Object.freeze({ ...input }) }),
    })
    this.recordsInput = recordInput
    this.#handler = handler.bind(definition)
  }

  async run(invocation: CommandInvocation): Promise<CommandResult | void> {
    return this.#handler(
      Object.freeze({ ...invocation, attachments: Object.freeze([...invocation.attachments]) }),
    )
  }
}
