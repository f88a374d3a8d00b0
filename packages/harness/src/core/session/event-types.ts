import type { SessionEventType } from '@dsh/protocol'
import { SessionError } from './errors.ts'
import { coreChecks } from './check-event.ts'
import type { DataCheck } from './check-event.ts'
import { isFields, messageOf } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/** What a plugin says of an event type that it writes. */
export interface EventTypeDefinition<Type extends SessionEventType = SessionEventType> {
  readonly type: Type
  /** Marks every event of the type: a reader that does not know it may skip it. */
  readonly ignorable?: true
  /** Throws for data the type may not hold. Asked when an event is written and when one is read. */
  validate?(data: unknown): void
}

interface Known {
  /** The plugin; undefined for the core. */
  readonly owner: string | undefined
  readonly ignorable: boolean
  readonly check: DataCheck
}

/** Of the core's own: those that a reader which does not know them may skip. */
const ignorableTypes = new Set(['tool/start', 'tools/offered', 'session/archived'])

const refused: Readonly<Record<string, string>> = {
  'request/header-delta': 'the type was replaced by whole "request/header" events',
}

/** The event types a harness knows: the core's, and those its plugins declare while they run. */
export class EventTypes {
  readonly #known = new Map<string, Known>()
  #version = 0

  constructor() {
    for (const [type, check] of Object.entries(coreChecks)) {
      this.#known.set(type, { owner: undefined, ignorable: ignorableTypes.has(type), check })
    }
  }

  /** Gives what takes exactly this declaration away. Throws DUPLICATE_EVENT_TYPE for a known type. */
  add(definition: EventTypeDefinition, owner: string): () => void {
    const { type, ignorable } = definition
    const other = this.#known.get(type)
    if (other !== undefined) {
      const holder = other.owner === undefined ? 'the core' : `plugin "${other.owner}"`
      throw new SessionError(
        'DUPLICATE_EVENT_TYPE',
        `event type "${type}" of plugin "${owner}" is already declared by ${holder}`,
      )
    }
    const check = (data: unknown): undefined => {
      definition.validate?.(data)
    }
    const known: Known = { owner, ignorable: ignorable === true, check }
    this.#known.set(type, known)
    this.#version += 1
    return () => {
      if (this.#known.get(type) !== known) return
      this.#known.delete(type)
      this.#version += 1
    }
  }

  /** Another number after each change. */
  get version(): number {
    return this.#version
  }

  has(type: string): boolean {
    return this.#known.has(type)
  }

  /** Whether an event of the type is written as one that may be skipped: nobody has to know what nobody declared. */
  isIgnorable(type: string): boolean {
    return this.#known.get(type)?.ignorable ?? true
  }

  /** The plugin that declares the type; undefined for the core's own and for unknown ones. */
  ownerOf(type: string): string | undefined {
    return this.#known.get(type)?.owner
  }

  /** Throws INVALID_EVENT, naming the type and the plugin that declares it. */
  check(type: string, data: unknown): void {
    const known = this.#known.get(type)
    if (known === undefined) {
      if (Object.hasOwn(refused, type)) throw invalid(type, refused[type])
      return
    }
    if (known.owner !== undefined) return checkOfPlugin(type, known, data)
    const problem = isFields(data) ? known.check(data) : 'data is no record'
    if (problem !== undefined) throw invalid(type, problem, authorOf(data))
  }
}

/** The core's types alone, for sessions outside a store. */
export const coreEventTypes = new EventTypes()

function checkOfPlugin(type: string, { owner, check }: Known, data: unknown): void {
  try {
    check(data as Fields)
  } catch (cause) {
    const message = messageOf(cause)
    throw new SessionError('INVALID_EVENT', `event "${type}" of plugin "${owner}": ${message}`, { cause })
  }
}

function invalid(type: string, problem: string | undefined, author?: string): SessionError {
  const by = author === undefined ? '' : ` by plugin "${author}"`
  return new SessionError('INVALID_EVENT', `event "${type}"${by}: ${problem}`)
}

/** The plugin that a message says it comes from. */
function authorOf(data: unknown): string | undefined {
  const source = isFields(data) ? data['source'] : undefined
  const plugin = isFields(source) && source['kind'] === 'plugin' ? source['plugin'] : undefined
  return typeof plugin === 'string' ? plugin : undefined
}
