import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { TurnEndReason } from '@dsh/protocol'
import { createUserMessage } from '../llm/index.ts'
import { Session } from '../session/index.ts'
import { Inbox } from './inbox.ts'
import { consumedWork } from './work.ts'

function setup() {
  const session = Session.create(SessionId('s'))
  const silent = (): void => {}
  const inbox = new Inbox(session, { inserted: silent, discarded: silent, claimed: silent })
  const say = () => createUserMessage({ content: [], source: { kind: 'user' } })
  const turn = (number: number, reason: TurnEndReason, inside: () => void = () => {}): void => {
    session.append('turn/start', { turn: number })
    inside()
    session.append('turn/end', { turn: number, reason })
  }
  const step = (number: number) => (): void => {
    session.append('step/start', { turn: number, step: 1 })
    session.append('step/end', { turn: number, step: 1 })
  }
  const work = () => {
    const { turns, droppedUnrun } = session.fold(consumedWork)
    return { turns, droppedUnrun }
  }
  return { session, inbox, say, turn, step, work }
}

test('a turn counts as work when it stepped, or took input and did not complete', () => {
  const { inbox, say, turn, step, work } = setup()
  turn(1, { kind: 'completed' })
  assert.equal(work().turns, 0)
  turn(2, { kind: 'completed' }, step(2))
  assert.equal(work().turns, 1)
  inbox.append('next-turn', say(), say())
  turn(3, { kind: 'completed' }, () => void inbox.claim('next-turn', 3))
  assert.equal(work().turns, 1)
  turn(4, { kind: 'blocked' }, () => void inbox.claim('next-turn', 4))
  assert.equal(work().turns, 2)
})

test('input that was cancelled counts as dropped until other input comes', () => {
  const { inbox, say, turn, work } = setup()
  inbox.append('next-turn', say())
  assert.equal(work().droppedUnrun, false)
  inbox.clear()
  assert.equal(work().droppedUnrun, true)
  const message = say()
  inbox.append('next-turn', message)
  assert.equal(work().droppedUnrun, false)
  inbox.replace(message.id, say())
  assert.equal(work().droppedUnrun, false)
  turn(1, { kind: 'completed' }, () => void inbox.claim('next-turn', 1))
  assert.equal(work().droppedUnrun, false)
})
