import { randomBytes } from 'node:crypto'
import { CommandId } from '@dsh/protocol'
import type { ImageBlock } from '@dsh/protocol'
import { HarnessError, Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import type { Agent } from '../agent/index.ts'
import { NamedEntries, ScopedCache, ScopedLayers } from '../scope/index.ts'
import type { Session } from '../session/index.ts'
import { readThrown, wellFormed } from '../tools/index.ts'
import { parseCommand } from './command.ts'
import type {
  CommandDefinition,
  CommandDescriptor,
  CommandExecution,
  CommandInvocation,
  CommandResult,
  ParsedCommand,
} from './command.ts'
import type { EncodedImage } from './images.ts'
import { RegisteredCommand } from './registered.ts'
import { toCommandResult } from './result.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    commands: Commands
  }
}

interface CommandLayer {
  readonly commands: NamedEntries<RegisteredCommand>
}

type View = ReadonlyMap<string, RegisteredCommand>

export interface ExecuteOptions {
  readonly images?: readonly EncodedImage[]
}

/**
 * What a person may call by `/name`, as `ctx.commands`.
 *
 * A command runs beside the turns: its beginning and end are two log events, and nothing of it reaches the model.
 */
export class Commands extends Service {
  private readonly layers: ScopedLayers<CommandLayer>
  private readonly views: ScopedCache<CommandLayer, View>
  /** Unlike that of any other process, so that no id comes twice in a log that is resumed. */
  private readonly token = randomBytes(6).toString('hex')
  private readonly minted = { count: 0 }

  constructor(ctx: Context) {
    super(ctx, 'commands')
    this.layers = new ScopedLayers<CommandLayer>(() => ({ commands: new NamedEntries('command') }))
    this.views = new ScopedCache<CommandLayer, View>(this.layers, scope => sorted(this.layers, scope))
  }

  /** For everybody, or for the caller's scope. Throws DUPLICATE_NAME where the layer has the name. */
  register(definition: CommandDefinition): Disposer {
    const command = new RegisteredCommand(definition)
    const { name } = command.descriptor
    const tell = (): void => this.ctx.emit('commands/change')
    const add = (layer: CommandLayer): (() => void) => layer.commands.add(name, command)
    return this.layers.effect(this.ctx, `command ${name}`, add, { added: tell, removed: tell })
  }

  /** What `agent` may be asked for, by name. */
  list(agent: Agent): readonly CommandDescriptor[] {
    return [...this.views.get(agent).values()].map(({ descriptor }) => descriptor)
  }

  find(agent: Agent, name: string): CommandDescriptor | undefined {
    return this.views.get(agent).get(name)?.descriptor
  }

  /**
   * Runs the command that `line` calls; undefined, with nothing logged, where it calls none.
   *
   * Rejects with what the handler threw, or with COMMAND_CANCELLED once `signal` aborts; the log has its end all the
   * same.
   */
  async execute(
    agent: Agent,
    line: string,
    signal: AbortSignal,
    options: ExecuteOptions = {},
  ): Promise<CommandExecution | undefined> {
    const parsed = parseCommand(line)
    const command = parsed === undefined ? undefined : this.views.get(agent).get(parsed.name)
    if (parsed === undefined || command === undefined) return undefined
    throwIfAborted(signal, parsed.name)
    const { session } = agent
    const commandId = CommandId(`cmd-${this.token}-${++this.minted.count}`)
    const { name, rawInput } = parsed
    session.append('command/run', {
      commandId,
      name,
      ...(command.recordsInput ? { args: wellFormed(rawInput) } : {}),
      source: { kind: 'user' },
    })
    try {
      const invocation = { commandId, agent, rawInput, signal }
      const result = await this.run(command, parsed, { ...invocation, images: options.images ?? [] })
      session.append('command/done', { commandId, ...result })
      return Object.freeze({ commandId, result })
    } catch (error) {
      this.close(session, commandId, error)
      throw error
    }
  }

  private async run(
    command: RegisteredCommand,
    parsed: ParsedCommand,
    call: Omit<CommandInvocation, 'attachments'> & { readonly images: readonly EncodedImage[] },
  ): Promise<CommandResult> {
    const { images, ...invocation } = call
    const { signal, agent } = invocation
    // Without pictures the handler starts before `execute` gives its promise.
    const attachments = images.length === 0 ? [] : await this.admit(command, images, invocation)
    if (!Array.isArray(attachments)) return attachments as CommandResult
    throwIfAborted(signal, parsed.name)
    const output = await untilAborted(command.run({ ...invocation, attachments }), signal, parsed.name)
    return toCommandResult(output, parsed.name, agent.session)
  }

  /** The stored pictures, or why there are none. */
  private async admit(
    command: RegisteredCommand,
    images: readonly EncodedImage[],
    { agent, signal }: Pick<CommandInvocation, 'agent' | 'signal'>,
  ): Promise<readonly ImageBlock[] | CommandResult> {
    const { name, input } = command.descriptor
    if (input?.images !== true) return refusal(`/${name} takes no pictures`)
    const store = this.ctx.get('attachments')
    if (store === undefined) return refusal('pictures cannot be stored here')
    try {
      const { session } = agent
      return await untilAborted(store.admitEncodedImages(images, { session, signal }), signal, name)
    } catch (error) {
      throwIfAborted(signal, name)
      return refusal(readThrown(error).message)
    }
  }

  private close(session: Session, commandId: CommandId, error: unknown): void {
    try {
      session.append('command/done', { commandId, kind: 'error', text: readThrown(error).message })
    } catch (failed) {
      this.ctx.fiber.report(failed, 'command/done')
    }
  }
}

function sorted(layers: ScopedLayers<CommandLayer>, scope: object | undefined): View {
  const merged = layers.merge(scope, layer => layer.commands)
  return new Map([...merged].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function refusal(text: string): CommandResult {
  return Object.freeze({ kind: 'error', text })
}

function throwIfAborted(signal: AbortSignal, name: string): void {
  if (!signal.aborted) return
  throw new HarnessError('COMMAND_CANCELLED', `/${name} was cancelled`, { cause: signal.reason })
}

/** What comes of `job` after an abort is dropped, a rejection too. */
function untilAborted<T>(job: Promise<T>, signal: AbortSignal, name: string): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onAbort = (): void => {
    try {
      throwIfAborted(signal, name)
    } catch (error) {
      reject(error as Error)
    }
  }
  signal.addEventListener('abort', onAbort, { once: true })
  job.then(resolve, reject)
  onAbort()
  return promise.finally(() => signal.removeEventListener('abort', onAbort))
}
