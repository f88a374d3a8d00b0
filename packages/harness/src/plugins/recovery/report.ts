import type { Session } from '../../core/session/index.ts'
import type { Context } from '../../kernel/index.ts'
import { untoldCutOffs } from './cut-off.ts'
import type { CutOff, UnfinishedCall } from './cut-off.ts'
import { examine } from './examine.ts'
import type { Verdict } from './examine.ts'

export interface ExaminedCall extends UnfinishedCall {
  readonly verdict: Verdict
}

interface ExaminedTurn extends CutOff {
  readonly calls: readonly ExaminedCall[]
}

/** What the end of a program left of a session's last turns. */
export interface RecoveryReport {
  /** Epoch ms of the last thing that was logged before it. */
  readonly time: number
  readonly turns: readonly ExaminedTurn[]
  /** What the process took along, one line each. */
  readonly lost: readonly string[]
}

/** Undefined for a session that lost nothing and was not cut off, or whose model has been told of that already. */
export async function examineSession(
  ctx: Context,
  session: Session,
  lost: readonly string[],
  signal?: AbortSignal,
): Promise<RecoveryReport | undefined> {
  const cutOffs = untoldCutOffs(session)
  const last = cutOffs.at(-1) ?? session.last('turn/end')
  if (last === undefined || (cutOffs.length === 0 && lost.length === 0)) return undefined
  const turns = await Promise.all(
    cutOffs.map(async cutOff => ({
      ...cutOff,
      calls: await Promise.all(
        cutOff.calls.map(async call => ({ ...call, verdict: await examine(ctx, call, signal) })),
      ),
    })),
  )
  return { time: last.time, turns, lost }
}
