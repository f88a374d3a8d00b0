import { SessionId } from '@dsh/protocol'
import { examine, faultyFileSystem, killStates, powerLossStates, randomOf } from '../../src/testing/index.ts'
import type { Fault, FaultyFileSystem, Finding, Random } from '../../src/testing/index.ts'
import { append } from '../../src/testing/contracts/store-program.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import type { Session } from '../../src/core/session/index.ts'
import { Machine } from './machine.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'
import { create, resume } from './scenarios.ts'

type FaultKind = Required<Pick<Fault, 'call' | 'code'>>

/** What may go wrong with a file system, by call. */
const kinds: readonly FaultKind[] = (
  [
    ['open', ['EMFILE', 'ENFILE', 'EACCES', 'EIO', 'ENOSPC', 'EROFS']],
    ['read', ['EIO', 'EMFILE']],
    ['stat', ['EIO', 'EACCES']],
    ['readdir', ['EIO', 'EMFILE']],
    ['mkdir', ['ENOSPC', 'EROFS', 'EDQUOT']],
    ['link', ['EIO', 'EMLINK', 'EPERM', 'ENOSPC']],
    ['rename', ['EIO', 'ENOSPC', 'EROFS']],
    ['unlink', ['EIO', 'EROFS']],
    ['syncFolder', ['EIO', 'EMFILE']],
    ['file.stat', ['EIO']],
    ['file.read', ['EIO']],
    ['file.write', ['ENOSPC', 'EIO', 'EDQUOT', 'EFBIG', 'SHORT']],
    ['file.truncate', ['EIO', 'EROFS']],
    ['file.sync', ['EIO', 'ENOSPC', 'EDQUOT']],
  ] as const
).flatMap(([call, codes]) => codes.map(code => ({ call, code })))

export interface FaultOptions {
  readonly seed: string
  /** How many places each kind of fault strikes at; fewer where the call is made less often. */
  readonly places: number
}

/** Lets each kind of call fail, once and for good, wherever it is made, and crashes around it. */
export async function injectFaults({ seed, places }: FaultOptions): Promise<Row> {
  const tally = new Tally(`${kinds.length} kinds of failing calls, once and for good`)
  const random = randomOf(`${seed} faults`)
  const counts = await countCalls()
  for (const kind of kinds) {
    const count = counts.get(kind.call) ?? 0
    const step = Math.max(1, count / places)
    for (let nth = 1 + random.below(Math.ceil(step)); nth <= count; nth = Math.ceil(nth + step)) {
      await tryFault({ ...kind, nth }, random, tally)
      await tryFault({ ...kind, nth, times: Infinity }, random, tally)
      // Where a write cannot be taken back either.
      if (kind.call === 'file.write' || kind.call === 'file.sync')
        await tryFault({ ...kind, nth }, random, tally, { call: 'file.truncate', nth: 1, code: 'EIO' })
    }
  }
  return tally.row
}

async function countCalls(): Promise<ReadonlyMap<string, number>> {
  const host = hostOf()
  await work(host.machine, async () => {})
  return new Map([...Map.groupBy(host.faulty().calls, call => call)].map(([call, all]) => [call, all.length]))
}

interface Host {
  readonly machine: Machine
  faulty(): FaultyFileSystem
}

function hostOf(): Host {
  let faulty: FaultyFileSystem | undefined
  const machine: Machine = new Machine({ wrap: fs => (faulty ??= faultyFileSystem(fs)) })
  return { machine, faulty: () => faulty as FaultyFileSystem }
}

async function tryFault(
  fault: Fault,
  random: Random,
  tally: Tally,
  ...more: readonly Fault[]
): Promise<void> {
  const text = `${fault.call} fails ${fault.times === undefined ? 'once' : 'for good'} with ${fault.code}, call ${fault.nth}${more.length === 0 ? '' : ', and truncate'}`
  const { machine, faulty } = hostOf()
  machine.open()
  faulty().inject(fault, ...more)
  const findings = await work(machine, async () => faulty().inject())
  tally.add(`${text}, and healed`, findings)
  const states = [random.pick(killStates(machine.fs, random)), ...powerLossStates(machine.fs, random, 2)]
  for (const state of states) {
    const left = machine.after(state)
    tally.add(`${text}; ${state.text}`, await examine(left.remains, left.ledger.current))
  }
}

/** A session's life, twice begun; what fails is tried again, at last when all is well again. */
async function work(machine: Machine, heal: () => Promise<void>): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const attempt = async (job: () => Promise<unknown>): Promise<boolean> => {
    try {
      await job()
      return true
    } catch (error) {
      const { code = '', message } = error as { code?: string; message: string }
      if (!expected.has(code) && !(error instanceof AggregateError))
        findings.push({ rule: 'available', text: `${code} ${message}`, lost: 0 })
      return false
    }
  }
  const first = await machine.start()
  const session = create(first)
  for (let turn = 1; turn <= 3; turn += 1) {
    append(session, ...turnOf(turn === 2 ? 'x'.repeat(70_000) : `turn ${turn}`, turn))
    await attempt(() => first.ctx.sessions.flush(session))
  }
  if (!(await attempt(() => first.stop()))) machine.kill()
  const next = await machine.start()
  const resumed: Session[] = []
  const goOn = async (): Promise<void> => {
    if (resumed.length === 0) resumed.push(await resume(next))
    for (const again of resumed) {
      append(again, ...turnOf(`resumed ${again.length}`, (again.last('turn/start')?.data.turn ?? 0) + 1))
      await next.ctx.sessions.flush(again)
    }
  }
  await attempt(goOn)
  await heal()
  const isStored = (machine.ledger.current.get(SessionId('s1'))?.safe ?? 0) > 0
  if (!(await attempt(goOn)) && isStored)
    findings.push({ rule: 'continuing', text: 'all is well again, and the session cannot go on', lost: 0 })
  if (!(await attempt(() => next.stop())))
    findings.push({ rule: 'continuing', text: 'all is well again, and the store cannot end', lost: 0 })
  return findings
}

const expected = new Set([
  'STORE_FAILED',
  'SESSION_HELD',
  'SESSION_NOT_FOUND',
  'SESSION_NOT_LIVE',
  'SESSION_EXISTS',
])
