import { textOf } from '@dsh/protocol'
import './events.ts'
import type { FoldDefinition, Session } from '../../core/session/index.ts'
import { isCount, isFields, isText } from '../../kernel/index.ts'
import type { ProjectionUnit } from '../session-projections/index.ts'
import type { TitleSource } from './events.ts'
import { hasText } from './text.ts'

/** The title of a session, and the event that gave it. */
export interface TitleSnapshot {
  readonly title: string
  readonly messageSeqs: readonly number[]
  readonly source: TitleSource
  readonly eventSeq: number
  readonly updatedAt: number
}

declare module '../session-projections/index.ts' {
  interface ProjectionStates {
    title: TitleSnapshot | null
  }
}

export const titleFold: FoldDefinition<TitleSnapshot | null, 'session/title'> = {
  name: 'title',
  types: ['session/title'],
  init: () => null,
  apply: (_state, { data, seq, time }) => ({ ...data, eventSeq: seq, updatedAt: time }),
}

export const titleUnit: ProjectionUnit<TitleSnapshot | null, 'session/title'> = {
  key: 'title',
  stateVersion: 1,
  fold: titleFold,
  isState: (value): value is TitleSnapshot | null => value === null || isSnapshot(value),
}

function isSnapshot(value: unknown): boolean {
  if (!isFields(value)) return false
  const { title, messageSeqs, source, eventSeq, updatedAt } = value
  const hasTitle = isText(title) && isFields(source) && isText(source['kind'])
  return (
    hasTitle &&
    Array.isArray(messageSeqs) &&
    messageSeqs.every(isCount) &&
    isCount(eventSeq) &&
    Number.isSafeInteger(updatedAt)
  )
}

/** Where a person wrote something that a title can be made of. */
export const promptSeqs: FoldDefinition<readonly number[], 'user/message'> = {
  name: 'prompts for titles',
  types: ['user/message'],
  init: () => [],
  apply(state, { data, seq, surfaceOp }) {
    if (data.source.kind !== 'user' || surfaceOp !== 'append') return state
    return hasText(textOf(data.content, '\n')) ? [...state, seq] : state
  },
}

export interface TitleMessage {
  readonly seq: number
  readonly text: string
}

export function messageAt(session: Session, seq: number): TitleMessage {
  const event = session.at(seq)
  return { seq, text: event?.type === 'user/message' ? textOf(event.data.content, '\n') : '' }
}
