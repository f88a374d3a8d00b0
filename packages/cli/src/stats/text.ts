import type {
  RouteCounts,
  SessionStats,
  TokenCounts,
  ToolCounts,
} from '@dsh/harness/plugins/session-projections'
import { columnsOf, inColumns } from '../columns.ts'
import { shortFolder } from '../place-and-time.ts'
import { counted, duration, grouped, unbroken } from '../text.ts'
import type { Totals } from './totals.ts'

export interface StatsHead {
  readonly id: string
  readonly title?: string | undefined
  readonly folder?: string | undefined
}

/** What one session took, as lines. */
export function sessionLines({ id, title, folder }: StatsHead, stats: SessionStats): readonly string[] {
  const { turns, steps, tools, toolMs } = stats
  const counts = Object.values(tools)
  const all: ToolCounts = { calls: sum(counts, 'calls'), errors: sum(counts, 'errors'), ms: toolMs }
  return [
    title === undefined ? id : `${id}  ${unbroken(title)}`,
    ...(folder === undefined ? [] : [field('folder', unbroken(shortFolder(folder)))]),
    field('turns', `${grouped(turns)}, with ${counted(steps, 'step')}`),
    field('model', modelText(stats)),
    field('tokens', tokensText(stats)),
    ...(all.calls === 0 ? [] : [field('tools', toolText(all)), ...toolLines(tools)]),
    ...dayLines(stats),
  ]
}

/** What all sessions took, by day, model and folder. */
export function totalLines({ sessions, sum: counts, days, models, folders }: Totals): readonly string[] {
  const { turns, steps } = counts
  const head = [
    counted(sessions, 'session'),
    counted(turns, 'turn'),
    counted(steps, 'step'),
    tokensText(counts),
  ]
  if (days.size === 0) return [head.join(' · ')]
  const newest = [...days].toSorted(([a], [b]) => (a < b ? 1 : -1))
  const short = [...folders].map(([folder, each]): [string, RouteCounts] => [shortFolder(folder), each])
  return [
    head.join(' · '),
    '',
    ...table('day (UTC)', newest),
    '',
    ...table('model', byTokens(models)),
    '',
    ...table('folder', byTokens(short)),
  ]
}

function modelText(stats: SessionStats): string {
  const { llmMs, ttftMs, ttftSteps, decodeMs, decodeTokens } = stats
  const counts = Object.values(stats.days).flatMap(models => Object.values(models))
  const requests = sum(counts, 'requests')
  const failures = sum(counts, 'failures')
  return [
    `${counted(requests, 'request')}${failures === 0 ? '' : `, ${grouped(failures)} failed`}`,
    duration(llmMs),
    ...(ttftSteps === 0 ? [] : [`first token after ${duration(ttftMs / ttftSteps)}`]),
    ...(decodeMs === 0 ? [] : [`${grouped(Math.round((decodeTokens / decodeMs) * 1000))} tokens a second`]),
  ].join(' · ')
}

function tokensText(counts: TokenCounts): string {
  const { outputTokens, reasoningTokens } = counts
  const reasoning = reasoningTokens === 0 ? '' : ` (${grouped(reasoningTokens)} to think)`
  const cached = counts.cacheReadTokens === 0 ? '' : ` (${cachedText(counts)} from the cache)`
  return `${grouped(sentOf(counts))} tokens in${cached} · ${grouped(outputTokens)} out${reasoning}`
}

function toolText({ calls, errors, ms }: ToolCounts): string {
  return `${counted(calls, 'call')}${errors === 0 ? '' : `, ${grouped(errors)} failed`} · ${duration(ms)}`
}

function toolLines(tools: SessionStats['tools']): readonly string[] {
  const slowest = Object.entries(tools).toSorted(([, a], [, b]) => b.ms - a.ms)
  const names = slowest.map(([name]) => unbroken(name))
  const width = Math.min(longestName, Math.max(...names.map(columnsOf)))
  return slowest.map(([, counts], at) => `    ${inColumns(names[at] ?? '', width)}  ${toolText(counts)}`)
}

function dayLines({ days }: SessionStats): readonly string[] {
  const rows = Object.entries(days).flatMap(([day, models]) =>
    Object.entries(models).map(([model, counts]): [string, RouteCounts] => [`${day} ${model}`, counts]),
  )
  return rows.length < 2 ? [] : ['', ...table('day (UTC) and model', rows)]
}

type Column = readonly [title: string, text: (counts: RouteCounts) => string]

const columns: readonly Column[] = [
  ['turns', ({ turns }) => grouped(turns)],
  ['steps', ({ steps }) => grouped(steps)],
  ['tokens in', counts => grouped(sentOf(counts))],
  ['cached', cachedText],
  ['tokens out', ({ outputTokens }) => grouped(outputTokens)],
  ['model time', ({ llmMs }) => duration(llmMs)],
  ['tool time', ({ toolMs }) => duration(toolMs)],
]

const longestName = 48

function table(title: string, rows: readonly (readonly [string, RouteCounts])[]): readonly string[] {
  const names = [title, ...rows.map(([name]) => unbroken(name))]
  const width = Math.min(longestName, Math.max(...names.map(columnsOf)))
  const cells = columns.map(([head, text]) => {
    const texts = [head, ...rows.map(([, counts]) => text(counts))]
    const right = Math.max(...texts.map(each => each.length))
    return texts.map(each => each.padStart(right))
  })
  return names.map((name, row) => [inColumns(name, width), ...cells.map(column => column[row])].join('  '))
}

function byTokens(rows: Iterable<readonly [string, RouteCounts]>): (readonly [string, RouteCounts])[] {
  return [...rows].toSorted(([, a], [, b]) => sentOf(b) + b.outputTokens - sentOf(a) - a.outputTokens)
}

function sentOf({ inputTokens, cacheReadTokens, cacheWriteTokens }: TokenCounts): number {
  return inputTokens + cacheReadTokens + cacheWriteTokens
}

function cachedText(counts: TokenCounts): string {
  const sent = sentOf(counts)
  return `${sent === 0 ? 0 : Math.round((counts.cacheReadTokens / sent) * 100)} %`
}

function field(name: string, text: string): string {
  return `  ${name.padEnd(7)}  ${text}`
}

function sum<Key extends string>(list: readonly { readonly [K in Key]: number }[], key: Key): number {
  return list.reduce((total, each) => total + each[key], 0)
}
