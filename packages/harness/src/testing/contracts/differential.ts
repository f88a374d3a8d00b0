import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import fc from 'fast-check'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import type { LogWriter, Medium } from '../../plugins/persistence/index.ts'
import { MemoryStore } from '../memory-store.ts'
import { looseEvents, placed } from './random-logs.ts'
import type { LooseEvent } from './random-logs.ts'
import type { StorePlace } from './store-program.ts'
import { headerOf } from './store-samples.ts'

const names = ['a', 'B', '漢/..'] as const

type Name = (typeof names)[number]

type Step =
  | { readonly kind: 'append'; readonly name: Name; readonly loose: readonly LooseEvent[] }
  /** Events that leave some out, or come again. */
  | {
      readonly kind: 'misplaced'
      readonly name: Name
      readonly by: number
      readonly loose: readonly LooseEvent[]
    }
  | { readonly kind: 'close' | 'second' | 'again' | 'remove' | 'revision'; readonly name: Name }
  | { readonly kind: 'read'; readonly name: Name; readonly fromSeq: number; readonly length: number }

const name = fc.constantFrom(...names)

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('append' as const), name, loose: looseEvents }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      name,
      fromSeq: fc.nat(30),
      length: fc.nat(20),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('misplaced' as const),
      name,
      by: fc.constantFrom(-2, -1, 1, 3),
      loose: looseEvents,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('close', 'second', 'again', 'remove', 'revision' as const),
      name,
    }),
  },
)

/**
 * Asks a medium and the one in memory for the same random steps, and compares every answer. For tests alone: it needs
 * fast-check.
 */
export function testStoreAgainstMemory(
  title: string,
  setup: (t: TestContext) => StorePlace | Promise<StorePlace>,
  options: { readonly runs?: number } = {},
): void {
  test(`${title}: whatever is done to it, it answers as the store in memory does`, async t => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
      const [subject, model] = [new Subject(await setup(t)), new Subject(new MemoryStore())]
      for (const each of steps) assert.deepEqual(await subject.take(each), await model.take(each), each.kind)
      for (const each of names) assert.deepEqual(await subject.stored(each), await model.stored(each))
      await subject.end()
    })
    await fc.assert(property, { numRuns: options.runs ?? 8, asyncReporter: report })
  })
}

/** The texts of a counterexample may be long. */
async function report(details: fc.RunDetails<[Step[]]>): Promise<void> {
  if (!details.failed) return
  const { seed, counterexamplePath, counterexample, errorInstance } = details
  const steps = JSON.stringify(counterexample?.[0]).replaceAll(/x{100,}/g, xs => `x{${xs.length}}`)
  throw new Error(`seed ${seed}, path ${counterexamplePath}: ${steps}`, { cause: errorInstance })
}

/** One of the two, and what the steps need to know of it. */
class Subject {
  readonly #place: Pick<StorePlace, 'open'>
  readonly #medium: Medium
  readonly #writers = new Map<Name, LogWriter>()
  readonly #lengths = new Map<Name, number>()
  readonly #revisions = new Map<Name, string | undefined>()

  constructor(place: Pick<StorePlace, 'open'>) {
    this.#place = place
    this.#medium = place.open()
  }

  /** What the step comes to, as JSON or a code, and what lists show then. */
  async take(each: Step): Promise<unknown> {
    const outcome = await outcomeOf(() => this.#do(each))
    const rows = (await this.#medium.list()).map(row => ('header' in row ? row.header : row))
    return { outcome, rows: rows.map(row => JSON.stringify(row)).toSorted() }
  }

  async stored(own: Name): Promise<unknown> {
    const log = await this.#place.open().read(SessionId(own))
    return log && { header: log.header, events: texts(log.events), gaps: log.gaps, toolStart: log.toolStart }
  }

  async end(): Promise<void> {
    for (const writer of this.#writers.values()) await writer.close()
    await this.#medium.close()
  }

  #do(each: Step): Promise<unknown> {
    const id = SessionId(each.name)
    switch (each.kind) {
      case 'append':
        return this.#append(each.name, each.loose, 0)
      case 'misplaced':
        return this.#append(each.name, each.loose, each.by)
      case 'read':
        return this.#read(each.name, each.fromSeq, each.length)
      case 'close':
        return this.#close(each.name)
      case 'second':
        return this.#second(id)
      case 'again':
        return this.#again(each.name)
      case 'remove':
        return this.#remove(each.name)
      case 'revision':
        return this.#hasChanged(each.name)
    }
  }

  async #append(own: Name, loose: readonly LooseEvent[], by: number): Promise<unknown> {
    const length = this.#lengths.get(own) ?? 0
    const events = placed(loose, Math.max(0, length + by), 1_700_000_000_000 + length)
    const writer = this.#writers.get(own) ?? (await this.#open(own))
    this.#writers.set(own, writer)
    await writer.append(events)
    this.#lengths.set(own, length + events.length)
    return this.#hasChanged(own)
  }

  async #open(own: Name): Promise<LogWriter> {
    if ((this.#lengths.get(own) ?? 0) === 0) return this.#medium.begin(headerFor(own))
    const { log, writer } = await this.#medium.resume(SessionId(own))
    assert.equal(log.events.length, this.#lengths.get(own))
    return writer
  }

  async #read(own: Name, fromSeq: number, length: number): Promise<unknown> {
    const log = await this.#medium.read(SessionId(own), { fromSeq })
    const shown: SessionEvent[] = []
    const range = { fromSeq, toSeq: fromSeq + length }
    const batches = this.#medium.stream(SessionId(own), range)
    const streamed = await outcomeOf(async () => {
      for await (const { events } of batches) shown.push(...events)
    })
    const isHeld = log?.holder !== undefined
    return { read: log && texts(log.events), isHeld, streamed, shown: texts(shown) }
  }

  async #close(own: Name): Promise<void> {
    await this.#writers.get(own)?.close()
    this.#writers.delete(own)
  }

  async #second(id: SessionId): Promise<number> {
    const { log, writer } = await this.#place.open().resume(id)
    await writer.close()
    return log.events.length
  }

  async #again(own: Name): Promise<void> {
    if ((this.#lengths.get(own) ?? 0) === 0) return
    const writer = this.#place.open().begin(headerFor(own))
    const events = placed([{ pause: 0, rest: { type: 'x/other', data: {} } }], 0, 0)
    try {
      await writer.append(events)
    } finally {
      await writer.close()
    }
  }

  async #remove(own: Name): Promise<unknown> {
    const isRemoved = await this.#medium.remove(SessionId(own))
    if (!isRemoved) return false
    this.#lengths.delete(own)
    return this.#hasChanged(own)
  }

  /** Since it was asked last. */
  async #hasChanged(own: Name): Promise<boolean> {
    const revision = await this.#place.open().revision(SessionId(own))
    const before = this.#revisions.get(own)
    this.#revisions.set(own, revision)
    return revision !== before
  }
}

function headerFor(own: Name): SessionHeader {
  return headerOf(own, own === 'B' ? { cwd: '/srv/other', parentSession: SessionId('a'), seedLength: 3 } : {})
}

/** To the order of the keys. */
function texts(events: readonly SessionEvent[]): readonly string[] {
  return events.map(event => JSON.stringify(event))
}

async function outcomeOf(job: () => Promise<unknown>): Promise<unknown> {
  try {
    return { value: await job() }
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    if (typeof code !== 'string' || code.startsWith('ERR_')) throw error
    return { code }
  }
}
