import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@dsh/harness/kernel'
import type { Context } from '@dsh/harness/kernel'
import { headless } from '@dsh/harness/presets/headless'
import { compositionFiles } from '../composition.ts'
import { endWithin } from '../end.ts'
import { counted } from '../text.ts'
import type { Io } from '../io.ts'
import { note, ok, problem } from './finding.ts'
import type { Check, Findings, Place } from './finding.ts'

const endMs = 2000

/** Mounts what a run would, so it runs the plugins of the person, and tells which of them do not work. */
export function composition(onUncaught: Io['onUncaught']): Check {
  return { name: 'plugins', look: place => lookAtPlugins(place, onUncaught) }
}

async function lookAtPlugins(place: Place, onUncaught: Io['onUncaught']): Promise<Findings> {
  const { home, env, command } = place
  const files = compositionFiles(home)
  const failures: Findings[number][] = []
  let mounted: Context | undefined
  onUncaught(error => {
    const isTold = mounted?.get('loader')?.reportUncaught(error) === true
    if (!isTold) failures.push(problem('PLUGIN_FAILED', messageOf(error), `${command} plugin why`))
    return true
  })
  const ctx = (mounted = await headless({ home, env, permission: 'read-only', files }))
  try {
    ctx.on('internal/error', (error, { name }, where) => {
      failures.push(problem('PLUGIN_FAILED', `${name} (${where}): ${messageOf(error)}`, whyOf(name, command)))
    })
    const found = [...problemsOfFile(ctx, home), ...rowsThatAreOff(ctx, place), ...passedOver(place)]
    const sound = ok(summary(ctx, files))
    // What fails at its end is told too.
    await endWithin(ctx, endMs)
    const all = [...found, ...failures]
    return all.length > 0 ? all : [sound]
  } finally {
    await endWithin(ctx, endMs)
  }
}

function problemsOfFile(ctx: Context, home: string): Findings {
  return ctx
    .inspect()
    .errors.filter(({ where }) => where === 'dsh.yml')
    .map(({ message }) => problem('COMPOSITION_UNREADABLE', message, `$EDITOR ${join(home, 'dsh.yml')}`))
}

function rowsThatAreOff(ctx: Context, { command }: Place): Findings {
  return (ctx.get('loader')?.report() ?? []).flatMap(({ id, state, reason, note: remark }) => {
    const isOff = state !== 'active' && state !== 'disabled'
    return [
      ...(isOff
        ? [problem('PLUGIN_OFF', `${id} is ${state}: ${reason ?? 'no reason is known'}`, whyOf(id, command))]
        : []),
      ...(remark === undefined ? [] : [note('PLUGIN_NOTE', `${id}: ${remark}`, whyOf(id, command))]),
    ]
  })
}

/** A composition of the folder would run its code. */
function passedOver({ cwd, home }: Place): Findings {
  if (cwd === undefined || cwd === home || !existsSync(join(cwd, 'dsh.yml'))) return []
  return [
    note('COMPOSITION_PASSED_OVER', `${join(cwd, 'dsh.yml')} is not read, only ${join(home, 'dsh.yml')}`),
  ]
}

function whyOf(id: string, command: string): string {
  return `${command} plugin why ${id}`
}

function summary(ctx: Context, files: readonly string[]): string {
  const rows = ctx.get('loader')?.report() ?? []
  if (files.length === 0) return 'as they come; there is no dsh.yml'
  const off = rows.filter(({ state }) => state === 'disabled').length
  return `${counted(rows.length - off, 'plugin')} on, ${off} switched off in ${files.join(', ')}`
}
