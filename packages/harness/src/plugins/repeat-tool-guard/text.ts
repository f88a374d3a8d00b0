import { cutText } from '../../core/tools/index.ts'
import type { ChainCall, Repetition } from './chain.ts'

const previewBytes = 500

/** A word about it. */
export function nudgeText(repetition: Repetition): string {
  return `${whatOf(repetition)}. If that does not bring you further, try something else.`
}

/** The same with the calls themselves, and what follows. */
export function detailText(repetition: Repetition, limit: number): string {
  const calls = repetition.calls.map(call => `- ${preview(call)}`)
  const results =
    repetition.kind === 'call' && repetition.isSame ? ['The results were the same each time.'] : []
  const end = `Stop and think about why. At ${limit} times the turn is ended.`
  return [`${whatOf(repetition)}:`, ...calls, ...results, end].join('\n')
}

export function askText({ count, calls }: Repetition): string {
  return calls.length === 1
    ? `the same call for the ${count}th time in a row`
    : `the same ${calls.length} calls over and over, ${count} times by now`
}

export function denialText({ count }: Repetition): string {
  return `this call was made ${count} times in a row; do something else, or say what keeps you`
}

/** Why the turn ended, for people. */
export function stopReason(repetition: Repetition): string {
  const { kind, count, calls } = repetition
  if (kind === 'error') return `${namesOf(calls)} failed ${count} times in a row with the same error`
  return calls.length === 1
    ? `the model made the same call of ${namesOf(calls)} ${count} times in a row`
    : `the model made the same calls over and over, ${count} times: ${namesOf(calls)}`
}

export function idleText(rounds: number): string {
  return `You have answered ${rounds} times without calling a tool. Do the next thing now, or say what keeps you.`
}

export function idleReason(rounds: number): string {
  return `the model answered ${rounds} times in a row without doing anything`
}

function whatOf({ kind, count, calls }: Repetition): string {
  if (kind === 'error') return `${namesOf(calls)} failed ${count} times in a row with the same error`
  return calls.length === 1
    ? `You made the same call of ${namesOf(calls)} ${count} times in a row`
    : `You make the same ${calls.length} calls over and over, ${count} times by now: ${namesOf(calls)}`
}

function namesOf(calls: readonly ChainCall[]): string {
  return calls.map(({ name }) => name).join(', ')
}

function preview({ name, arguments: args }: ChainCall): string {
  return `${name} ${cutText(args, previewBytes)}`
}
