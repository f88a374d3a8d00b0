import { CallId } from '@dsh/protocol'
import { isWholeObject } from './arguments.ts'
import { endsInHalf } from './block-writer.ts'
import type { BlockWriter } from './block-writer.ts'

/** One entry of a delta's `tool_calls`, its fields already checked; what is missing is empty. */
export interface CallFragment {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  readonly args: string
}

interface Slot {
  /** As the host writes it; empty until it does. */
  wireId: string
  /** As the log gets it. */
  id: CallId | undefined
  name: string
  args: string
  /** The end of `args` that has not been written yet. */
  pending: string
  block: number | undefined
  isNameWritten: boolean
}

export interface CallCollectorOptions {
  /** Whether the session has a call with this id already. */
  isTaken(id: string): boolean
  newId(): string
  report(text: string): void
}

/** What some hosts send before the real arguments. */
const placeholder = '{}'

/**
 * Puts tool calls together from fragments, in all the forms that hosts send them: without an index, without an id,
 * with an id in the first or the last fragment alone or a new one in each, with repeated names and arguments.
 */
export class CallCollector {
  readonly #writer: BlockWriter
  readonly #options: CallCollectorOptions
  readonly #slots: Slot[] = []
  readonly #byIndex = new Map<number, Slot>()
  readonly #ids = new Set<string>()

  constructor(writer: BlockWriter, options: CallCollectorOptions) {
    this.#writer = writer
    this.#options = options
  }

  /** Whether nothing that is a call has been written. */
  get isEmpty(): boolean {
    return this.#slots.every(slot => slot.block === undefined)
  }

  /** The fragments of one delta; those without an index and an id are different calls by their place in it. */
  add(fragments: readonly CallFragment[]): void {
    for (const [place, fragment] of fragments.entries()) this.#add(fragment, place)
  }

  /** Ends all calls; an empty one without a name falls away. */
  finish(): void {
    for (const slot of this.#slots) {
      const isNothing = slot.name === '' && slot.args === '' && slot.wireId === ''
      if (isNothing && slot.block === undefined) continue
      if (slot.name === '') {
        slot.name = 'unnamed'
        this.#options.report('a tool call came without a name')
      }
      this.#flow(slot, { last: true })
      const text = slot.args.toWellFormed()
      const block = { type: 'tool-call', id: this.#idOf(slot), name: slot.name, arguments: text } as const
      this.#writer.push({ type: 'block-end', index: slot.block ?? 0, block })
    }
  }

  #add(fragment: CallFragment, place: number): void {
    const slot = this.#slotFor(fragment, place)
    if (slot.wireId === '') slot.wireId = fragment.id
    this.#setName(slot, fragment.name)
    if (fragment.args !== '') this.#append(slot, fragment.args)
    if (slot.wireId !== '') this.#flow(slot, { last: false })
  }

  #append(slot: Slot, args: string): void {
    if (args === slot.args && isWholeObject(args)) {
      this.#options.report(`call "${slot.name}" repeated its arguments`)
      return
    }
    if (slot.args === placeholder && slot.pending === placeholder && args.startsWith('{')) {
      slot.args = ''
      slot.pending = ''
    }
    slot.args += args
    slot.pending += args
  }

  #setName(slot: Slot, name: string): void {
    if (name === '' || name === slot.name) return
    if (slot.name === '') slot.name = name
    else if (slot.args !== '') this.#options.report(`call "${slot.name}" is named "${name}" later on`)
    else slot.name = name.startsWith(slot.name) ? name : slot.name + name
  }

  #slotFor(fragment: CallFragment, place: number): Slot {
    const { index, id, name } = fragment
    if (index !== undefined) {
      const known = this.#byIndex.get(index)
      if (known && !isOther(known, fragment)) return known
      const slot = this.#open()
      this.#byIndex.set(index, slot)
      return slot
    }
    if (id !== '') return this.#slots.find(slot => slot.wireId === id) ?? this.#unnamedLast() ?? this.#open()
    const last = this.#slots.at(-1)
    if (last === undefined || (place > 0 && name !== '')) return this.#open()
    const continues = name === '' || last.name === '' || (last.name === name && isPartial(last))
    return continues ? last : this.#open()
  }

  /** A call that began with bare arguments takes the first id that follows. */
  #unnamedLast(): Slot | undefined {
    const last = this.#slots.at(-1)
    return last?.wireId === '' && last.name === '' ? last : undefined
  }

  #open(): Slot {
    const slot: Slot = {
      wireId: '',
      id: undefined,
      name: '',
      args: '',
      pending: '',
      block: undefined,
      isNameWritten: false,
    }
    this.#slots.push(slot)
    return slot
  }

  /** Writes what is there. A lone `{}` waits, since real arguments may take its place. */
  #flow(slot: Slot, { last }: { readonly last: boolean }): void {
    const isStart = slot.block === undefined
    slot.block ??= this.#writer.startCall()
    const isWaiting = !last && (slot.pending === placeholder || endsInHalf(slot.pending))
    const argumentsDelta = isWaiting ? '' : slot.pending.toWellFormed()
    const isNamed = !slot.isNameWritten && slot.name !== ''
    if (!isStart && !isNamed && argumentsDelta === '') return
    slot.isNameWritten ||= isNamed
    if (!isWaiting) slot.pending = ''
    const id = this.#idOf(slot)
    this.#writer.callDelta(slot.block, { id, ...(isNamed ? { name: slot.name } : {}), argumentsDelta })
  }

  #idOf(slot: Slot): CallId {
    if (slot.id !== undefined) return slot.id
    const { wireId } = slot
    const isFree = wireId !== '' && !this.#ids.has(wireId) && !this.#options.isTaken(wireId)
    if (!isFree && wireId !== '')
      this.#options.report(`id "${wireId}" of call "${slot.name}" was used before`)
    slot.id = CallId(isFree ? wireId : this.#options.newId())
    this.#ids.add(slot.id)
    return slot.id
  }
}

/** Some hosts give all calls the same index; a new id together with a name begins a new call. */
function isOther(slot: Slot, { id, name }: CallFragment): boolean {
  if (id === '' || slot.wireId === '' || id === slot.wireId || name === '') return false
  return !(name === slot.name && isPartial(slot))
}

function isPartial(slot: Slot): boolean {
  return slot.args !== '' && !isWholeObject(slot.args)
}
