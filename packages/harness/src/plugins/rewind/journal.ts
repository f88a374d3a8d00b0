import { randomUUID } from 'node:crypto'
import { link, open, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionId } from '@dsh/protocol'
import { isFields, isPositive, isText, parseJson, syncFolder } from '../../kernel/index.ts'
import type { LogPlace, RewindScope } from './events.ts'
import type { ProcessIdentity } from '../persistence/index.ts'
import type { Plan } from './plan.ts'

/** All that is needed to complete a rewind, whoever began it. */
export interface Journal {
  readonly owner: ProcessIdentity
  /** Tells it from every other. */
  readonly nonce: string
  readonly scope: RewindScope
  readonly from: LogPlace
  readonly to: LogPlace
  /** The session that goes on; made where it is a new one. */
  readonly session: SessionId
  /** How the new session is cut out of `from`; absent where there is none. */
  readonly cut?: { readonly boundary: number; readonly openTurn: boolean }
  /** Absent where files are left alone. */
  readonly plan?: Plan
  readonly backup?: string
  readonly undo?: true
}

const file = 'rewind.json'

/** False where a rewind of the workspace is already written down. It is durable when this resolves. */
export async function beginJournal(folder: string, journal: Journal): Promise<boolean> {
  const temporary = join(folder, `${file}.${randomUUID()}`)
  const handle = await open(temporary, 'wx', 0o600)
  try {
    await handle.writeFile(JSON.stringify(journal))
    await handle.sync()
  } finally {
    await handle.close()
  }
  try {
    await link(temporary, join(folder, file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await unlink(temporary)
  }
  await syncFolder(folder).catch(async (error: unknown) => {
    // Else the next program would complete what was refused here.
    await endJournal(folder)
    throw error
  })
  return true
}

/** Undefined where there is none. It is whole, its name is given when it has been written; 'damaged' since then. */
export async function readJournal(folder: string): Promise<Journal | 'damaged' | undefined> {
  let text: string
  try {
    text = await readFile(join(folder, file), 'utf8')
  } catch {
    return undefined
  }
  const read = parseJson(text)
  return isJournal(read) ? (read as unknown as Journal) : 'damaged'
}

function isJournal(read: unknown): boolean {
  if (!isFields(read)) return false
  const { owner, nonce, scope, from, to, session, plan } = read
  return (
    isFields(owner) &&
    isPositive(owner['pid']) &&
    ['start', 'boot', 'host', 'space'].every(key => typeof owner[key] === 'string') &&
    [nonce, scope, session].every(isText) &&
    [from, to].every(place => isFields(place) && isText(place['session'])) &&
    (plan === undefined || isPlan(plan))
  )
}

function isPlan(plan: unknown): boolean {
  return isFields(plan) && ['steps', 'kept', 'leaving', 'coming'].every(key => Array.isArray(plan[key]))
}

/** Out of the way of others, for whoever wants to look at it. */
export async function setJournalAside(folder: string): Promise<void> {
  await rename(join(folder, file), join(folder, `${file}.damaged`))
}

export async function endJournal(folder: string): Promise<void> {
  await unlink(join(folder, file))
}
