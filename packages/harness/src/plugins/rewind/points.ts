import './events.ts'
import { textOf } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition, Session } from '../../core/session/index.ts'
import type { RestorePoint, RewindRow } from './service.ts'

type Point = Omit<RestorePoint, 'workspace'>

/** A point with the event that a person knows it by. */
interface Entry {
  readonly point: Point
  /** Seq of the turn or the call. */
  readonly seq: number
  readonly before: Entry | undefined
}

interface Call {
  readonly seq: number
  readonly callId: string
  readonly before: Call | undefined
}

interface Prompt {
  readonly seq: number
  readonly turn: number
  readonly before: Prompt | undefined
}

interface Points {
  readonly last: Entry | undefined
  readonly prompts: Prompt | undefined
  readonly turn: number
  readonly turnSeq: number
  readonly hasPrompt: boolean
  /** The calls of the turn, the newest first. */
  readonly calls: Call | undefined
}

const types = ['turn/start', 'user/message', 'tool/call', 'restore/point', 'rewind/applied'] as const

/** The restore points of a session; each state shares the older ones. */
const restorePoints: FoldDefinition<Points, (typeof types)[number]> = {
  name: 'restore points',
  types,
  init: () => ({
    last: undefined,
    prompts: undefined,
    turn: 0,
    turnSeq: 0,
    hasPrompt: false,
    calls: undefined,
  }),
  apply(state, event) {
    switch (event.type) {
      case 'turn/start':
        return { ...state, turn: event.data.turn, turnSeq: event.seq, hasPrompt: false, calls: undefined }
      case 'user/message':
        if (state.hasPrompt || event.data.source.kind !== 'user') return state
        return {
          ...state,
          hasPrompt: true,
          prompts: { seq: event.seq, turn: state.turn, before: state.prompts },
        }
      case 'tool/call':
        return {
          ...state,
          calls: { seq: event.seq, callId: event.data.callId, before: state.calls },
        }
      case 'restore/point':
        return { ...state, last: entryOf(state, event) }
      case 'rewind/applied':
        return { ...state, last: rewindEntry(state, event) ?? state.last }
    }
  },
}

function entryOf(state: Points, { seq, data }: SessionEvent<'restore/point'>): Entry {
  const { callId, by, changed = [], ...rest } = data
  const kind = by ?? (data.step === undefined ? 'turn' : 'step')
  const place = kind === 'step' ? callSeq(state.calls, callId) : state.turnSeq
  return { point: { seq, kind, ...rest, changed }, seq: place ?? data.after, before: state.last }
}

function rewindEntry(state: Points, { seq, data }: SessionEvent<'rewind/applied'>): Entry | undefined {
  const { commit, backup, files, written, kept } = data
  if (commit === undefined) return undefined
  const changed = files.map(({ path, action }) => ({ path, status: statusOf[action] }))
  const point: Point = {
    seq,
    kind: 'rewind',
    turn: state.last?.point.turn ?? 0,
    after: seq,
    commit,
    ...(backup === undefined ? {} : { parent: backup }),
    files: written,
    insertions: 0,
    deletions: 0,
    changed,
    kept: kept.filter(({ reason }) => reason === 'changed-by-user').map(({ path }) => path),
  }
  return { point, seq, before: state.last }
}

const statusOf = { restore: 'modified', recreate: 'added', delete: 'deleted' } as const

function callSeq(calls: Call | undefined, callId: string | undefined): number | undefined {
  let found: number | undefined
  // Models repeat ids; the first call of the turn that has it would name the wrong step, the newest does not.
  for (let at = calls; at !== undefined && found === undefined; at = at.before)
    if (at.callId === callId) found = at.seq
  return found
}

/** Oldest first. */
export function pointsOf(session: Session): readonly RestorePoint[] {
  return entriesOf(session).map(({ point }) => withWorkspace(point, session))
}

export function lastPoint(session: Session): RestorePoint | undefined {
  const { last } = session.fold(restorePoints)
  return last === undefined ? undefined : withWorkspace(last.point, session)
}

/** The newest point whose state is no later than right after event `seq`. */
export function pointAt(session: Session, seq: number): RestorePoint | undefined {
  let { last } = session.fold(restorePoints)
  while (last !== undefined && last.point.after > seq) last = last.before
  return last === undefined ? undefined : withWorkspace(last.point, session)
}

/** What the session can be taken back to: each prompt, and each step that changed files. */
export function rowsOf(session: Session): readonly RewindRow[] {
  const entries = entriesOf(session)
  const points = entries.map(({ point }) => point)
  const ofTurns = new Map(points.filter(({ kind }) => kind === 'turn').map(point => [point.turn, point]))
  const prompts = promptsOf(session).map(({ seq, turn }): RewindRow => {
    const point = ofTurns.get(turn)
    return {
      seq,
      kind: 'user',
      turn,
      text: textOfEvent(session.at(seq)),
      ...totalOf(points.filter(each => each.kind === 'step' && each.turn === turn)),
      ...(point === undefined ? {} : { point: withWorkspace(point, session) }),
    }
  })
  const others = entries.flatMap(({ point, seq }): RewindRow[] => {
    if (point.kind === 'turn' || point.kind === 'user') return []
    const { turn, files, insertions, deletions } = point
    const event = session.at(seq)
    return [
      {
        seq,
        kind: point.kind === 'step' ? 'tool' : 'rewind',
        turn,
        text: textOfEvent(event),
        ...(event?.type === 'tool/call' ? { arguments: event.data.arguments } : {}),
        files,
        insertions,
        deletions,
        point: withWorkspace(point, session),
      },
    ]
  })
  return [...prompts, ...others].toSorted((a, b) => a.seq - b.seq)
}

/** A file that several steps changed counts once, as far as the points name their files. */
function totalOf(steps: readonly Point[]): Pick<Point, 'files' | 'insertions' | 'deletions'> {
  const named = new Set(steps.flatMap(({ changed }) => changed.map(({ path }) => path)))
  const unnamed = steps.reduce((sum, { files, changed }) => sum + files - changed.length, 0)
  return {
    files: named.size + unnamed,
    insertions: steps.reduce((sum, { insertions }) => sum + insertions, 0),
    deletions: steps.reduce((sum, { deletions }) => sum + deletions, 0),
  }
}

function textOfEvent(event: SessionEvent | undefined): string {
  if (event?.type === 'tool/call') return event.data.name
  return event?.type === 'user/message' ? textOf(event.data.content) : ''
}

function entriesOf(session: Session): readonly Entry[] {
  const entries: Entry[] = []
  for (let at = session.fold(restorePoints).last; at !== undefined; at = at.before) entries.push(at)
  return entries.toReversed()
}

function promptsOf(session: Session): readonly Prompt[] {
  const prompts: Prompt[] = []
  for (let at = session.fold(restorePoints).prompts; at !== undefined; at = at.before) prompts.push(at)
  return prompts.toReversed()
}

function withWorkspace(point: Point, { header }: Session): RestorePoint {
  return { ...point, workspace: header.cwd ?? '' }
}
