import type { Context, FiberReport } from '@dsh/harness/kernel'
import { nearest } from '@dsh/harness/kernel'
import { headless } from '@dsh/harness/presets/headless'
import { compositionFiles, tellRowsThatAreOff } from '../composition.ts'
import { endWithin } from '../end.ts'
import { usageError } from '../errors.ts'
import { inert } from '../text.ts'
import type { CommandBody } from '../command.ts'

const endMs = 5000

/** What became of one plugin. */
interface Row {
  readonly id: string
  readonly state: string
  readonly reason?: string
  readonly report?: FiberReport
}

export const plugin: CommandBody = async ({ values, words }, io) => {
  const [action, name, ...extra] = words
  if (action !== 'why') {
    const what = action === undefined ? 'nothing' : `"${action}"${nearest(action, ['why'])}`
    throw usageError('UNKNOWN_ACTION', `dsh plugin does why; found ${what}`, 'dsh plugin why')
  }
  if (extra[0] !== undefined)
    throw usageError('UNEXPECTED_WORD', `dsh plugin why takes no "${extra[0]}"`, 'dsh plugin --help')
  const { home, env } = io
  const ctx = await headless({ home, env, permission: 'read-only', files: compositionFiles(home) })
  try {
    const rows = rowsOf(ctx)
    const chosen = name === undefined ? rows : [find(rows, name)]
    tellRowsThatAreOff(ctx, io)
    const width = Math.max(...chosen.map(({ id }) => id.length))
    const short = (row: Row): string => lineOf(row, width)
    const format = values.json === true ? JSON.stringify : name === undefined ? short : detailsOf
    for (const row of chosen) io.out.write(`${inert(format(row))}\n`)
    return 0
  } finally {
    await endWithin(ctx, endMs)
  }
}

/** What the program itself mounted, then the rows of the composition. */
function rowsOf(ctx: Context): Row[] {
  const loader = ctx.get('loader')
  const rows = (loader?.report() ?? []).map(({ id, state, reason }): Row => {
    const report = loader?.inspect(id)
    return { id, state, ...(reason !== undefined && { reason }), ...(report !== undefined && { report }) }
  })
  const known = new Set(rows.map(({ report }) => report?.id))
  const own = ctx.inspect().children.filter(({ id }) => !known.has(id))
  return [...own.map((report): Row => ({ id: report.name, state: report.state, report })), ...rows]
}

function find(rows: readonly Row[], name: string): Row {
  const row = rows.find(({ id }) => id === name)
  if (row !== undefined) return row
  const hint = nearest(
    name,
    rows.map(({ id }) => id),
  )
  throw usageError('UNKNOWN_PLUGIN', `no plugin is called "${name}"${hint}`, 'dsh plugin why')
}

function lineOf({ id, state, reason, report }: Row, width: number): string {
  const waits =
    report === undefined || report.waitsFor.length === 0 ? '' : `waits for ${report.waitsFor.join(', ')}`
  return `${id.padEnd(width)}  ${state.padEnd(9)}  ${reason ?? waits}`.trimEnd()
}

function detailsOf(row: Row): string {
  const { report } = row
  const errors = report?.errors.map(({ where, message }) => `${where}: ${message}`) ?? []
  const lists: [string, readonly string[]][] = [
    ['waits for', report?.waitsFor ?? []],
    ['provides', report === undefined ? [] : allOf(report, ({ provides }) => provides)],
    ['did', report === undefined ? [] : allOf(report, ({ effects }) => effects)],
    ['failed at', errors],
  ]
  const filled = lists.filter(([, list]) => list.length > 0)
  return [
    lineOf(row, row.id.length),
    ...filled.map(([what, list]) => `  ${what.padEnd(9)} ${list.join(', ')}`),
  ].join('\n')
}

function allOf(report: FiberReport, pick: (report: FiberReport) => readonly string[]): string[] {
  const own = pick(report).filter(label => !label.startsWith('plugin ') && !label.startsWith('provide '))
  return [...own, ...report.children.flatMap(child => allOf(child, pick))]
}
