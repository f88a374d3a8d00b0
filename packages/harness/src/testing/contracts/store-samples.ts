import { CallId, CommandId, MessageId, SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { answerFact, callFact, headerFact, logOf, resultFact, textFact, userFact } from '../given.ts'
import type { Draft } from '../given.ts'

/** A header as the first life of a session has it. */
export function headerOf(id: string, rest: Partial<SessionHeader> = {}): SessionHeader {
  return { version: 0, id: SessionId(id), createdAt: 1_700_000_000_000, cwd: '/srv/project', ...rest }
}

/** A finished turn that asked `text`. */
export function turnOf(text: string, turn = 1): readonly Draft[] {
  return [
    ['turn/start', { turn }],
    ['step/start', { turn, step: 1 }],
    ['user/message', userFact(text)],
    ['assistant/message', answerFact('done', [], { turn })],
    ['step/end', { turn, step: 1 }],
    ['turn/end', { turn, reason: { kind: 'completed' } }],
  ]
}

/** Events of every type of the core, with texts that a store may stumble over. */
export function everyType(): SessionEvent[] {
  return logOf(
    ['agent/inbox/spliced', { target: 'next-turn', start: 0, inserted: [userFact('hello')] }],
    ['turn/start', { turn: 1 }],
    ['agent/inbox/spliced', { target: 'next-turn', start: 0, removedCount: 1, inserted: [] }],
    ['step/start', { turn: 1, step: 1 }],
    [
      'user/message',
      userFact('a line\nwith "quotes", \u0000, \u2028, 漢字 🎉 and half of one: \ud83c', 'hello'),
    ],
    ['request/header', headerFact()],
    ['request/context', { provider: 'mock', model: 'mock', contextWindow: 1000 }],
    ['assistant/chunk', { turn: 1, step: 1, chunk: { type: 'block-start', index: 0, blockType: 'text' } }],
    ['assistant/chunk', textFact('thinking')],
    ['assistant/chunk', { turn: 1, step: 1, chunk: { type: 'finish', reason: { kind: 'tool-calls' } } }],
    ['assistant/message', answerFact('thinking', ['c1', 'c2']), { sourceEventSeqs: [7, 8, 9] }],
    ['tool/call', callFact('c1')],
    ['tool/start', { turn: 1, step: 1, callId: CallId('c1') }, { ignorable: true }],
    ['tool/result', resultFact('c1', 'x'.repeat(70_000))],
    ['tool/call', callFact('c2')],
    ['tool/result', resultFact('c2', 'no', { error: { name: 'ToolError', code: 'UNKNOWN_TOOL' } })],
    ['todo/write', { todos: [{ content: '__proto__', status: 'pending' }] }],
    ['step/end', { turn: 1, step: 1 }],
    ['turn/end', { turn: 1, reason: { kind: 'aborted', reason: { kind: 'user' } } }],
    ['command/run', { commandId: CommandId('k1'), name: 'help', source: { kind: 'user' } }],
    ['command/done', { commandId: CommandId('k1'), kind: 'success', text: '' }],
    ['user/message', { ...userFact('compacted'), id: MessageId('short') }, shortened],
    ['session/end-seed', {}],
  )
}

const shortened = { surfaceOp: { op: 'replace', start: 4, end: 10 }, sourceEventSeqs: [4, 10] } as const
