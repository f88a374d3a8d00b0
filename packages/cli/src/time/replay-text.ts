import type { Divergence, ReplayReport, RunFacts } from '@dsh/harness/plugins/replay'
import { cutText } from '@dsh/harness/tools'
import type { TokenUsage } from '@dsh/protocol'
import { endOf } from '../lines.ts'
import { paint } from '../style.ts'
import type { Style } from '../style.ts'
import { duration, grouped, oneLine, unbroken } from '../text.ts'
import { actsBeside } from './acts.ts'
import type { Act, ActPair } from './acts.ts'
import { costOf } from './cost.ts'

const labelWidth = 12
const cellWidth = 38

/** Two runs of the same inputs beside each other. */
export function replayLines({ recorded, replayed, divergence }: ReplayReport, style: Style): string[] {
  const row = (label: string, show: (facts: RunFacts) => string): string =>
    line(label, show(recorded), show(replayed))
  return [
    line('', 'recorded', 'replayed'),
    row('model', modelsOf),
    row('turns', facts => grouped(facts.turns)),
    row('requests', facts => grouped(facts.requests)),
    row('tokens in', facts => inputText(totalOf(facts))),
    row('tokens out', facts => grouped(totalOf(facts).outputTokens)),
    row('cost', costText),
    row('time', facts => duration(facts.ms)),
    row('tool calls', callsText),
    row('ended', endText),
    '',
    ...actsBeside(recorded, replayed).map(pair => actLine(pair, style)),
    '',
    divergence === undefined ? agreementText(replayed) : divergenceText(divergence),
    `answer recorded: ${oneLine(recorded.answer) || 'none'}`,
    `answer replayed: ${oneLine(replayed.answer) || 'none'}`,
  ]
}

/** What ended early had no chance to call anything else. */
function agreementText({ end }: RunFacts): string {
  return end?.kind === 'completed'
    ? 'every call was the recorded one'
    : 'no call was another one before the end'
}

/** The same as data. */
export function replayJson(report: ReplayReport, sessionId: string): object {
  const { divergence = null } = report
  const side = (facts: RunFacts): object => {
    const { usages, end = null, ...rest } = facts
    return { ...rest, end, model: modelsOf(facts), usage: totalOf(facts), cost: costOf(usages) ?? null }
  }
  const { turn, expected = null, came = null } = divergence ?? {}
  const parting = divergence === null ? null : { turn, expected, came }
  return { sessionId, recorded: side(report.recorded), replayed: side(report.replayed), divergence: parting }
}

/** Where the model left the recorded path. */
function divergenceText({ turn, expected, came }: Divergence): string {
  const had =
    expected === undefined
      ? 'the log has no more calls'
      : `the log has ${callText(expected)} (#${expected.seq})`
  const did = came === undefined ? 'the model ended the turn' : `the model called ${callText(came)}`
  return unbroken(`diverged in turn ${turn}: ${had}, ${did}`)
}

function callText(call: { readonly name: string; readonly arguments: unknown }): string {
  return `${call.name} ${cutText(JSON.stringify(call.arguments), 120)}`
}

function line(label: string, left: string, right: string): string {
  const cells = [left, right].map(cell => cutText(oneLine(cell), cellWidth - 2).padEnd(cellWidth))
  return `${label.padEnd(labelWidth)} ${cells.join('')}`.trimEnd()
}

function actLine({ recorded, replayed, isOther }: ActPair, style: Style): string {
  const place = recorded?.place ?? replayed?.place ?? ''
  const text = line(place, textOf(recorded), textOf(replayed))
  if (!isOther) return text
  return paint(`${text} ≠`, 'yellow', style)
}

function textOf(act: Act | undefined): string {
  if (act === undefined) return ''
  return act.call === undefined ? act.text : `${act.call.name} ${act.call.arguments}`
}

function endText({ end }: RunFacts): string {
  if (end === undefined) return 'open'
  const reason = end.kind === 'aborted' && end.reason.kind === 'hook' ? end.reason.reason : undefined
  return reason ?? endOf(end)
}

function modelsOf({ usages }: RunFacts): string {
  return [...new Set(usages.map(({ provider, model }) => `${provider}/${model}`))].join(', ') || 'none'
}

function totalOf({ usages }: RunFacts): Required<Omit<TokenUsage, 'reasoningTokens'>> {
  const sum = (pick: (usage: TokenUsage) => number | undefined): number =>
    usages.reduce((total, { usage }) => total + (pick(usage) ?? 0), 0)
  return {
    inputTokens: sum(usage => usage.inputTokens),
    outputTokens: sum(usage => usage.outputTokens),
    cacheReadTokens: sum(usage => usage.cacheReadTokens),
    cacheWriteTokens: sum(usage => usage.cacheWriteTokens),
  }
}

function inputText({ inputTokens, cacheReadTokens, cacheWriteTokens }: ReturnType<typeof totalOf>): string {
  const cached = cacheReadTokens === 0 ? '' : ` (${grouped(cacheReadTokens)} cached)`
  return `${grouped(inputTokens + cacheReadTokens + cacheWriteTokens)}${cached}`
}

function costText({ usages }: RunFacts): string {
  const cost = costOf(usages)
  return cost === undefined ? 'unknown' : `${cost.amount.toFixed(4)} ${cost.currency}`
}

function callsText({ calls }: RunFacts): string {
  return (
    Object.entries(calls)
      .map(([name, times]) => `${name} ${times}`)
      .join(', ') || 'none'
  )
}
