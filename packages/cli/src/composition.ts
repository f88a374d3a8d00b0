import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@dsh/harness/kernel'
import type { Context } from '@dsh/harness/kernel'
import type { FailureListener } from '@dsh/harness/presets/headless'
import { CliError } from './errors.ts'
import { inert } from './text.ts'
import type { Io } from './io.ts'

/** The person's own composition, where there is one. That of a project comes from `projectFiles` alone, once trusted. */
export function compositionFiles(home: string): readonly string[] {
  const file = join(home, 'dsh.yml')
  return existsSync(file) ? [file] : []
}

/** One line for each plugin that should run and does not, and for each file that could not be used. */
export function tellRowsThatAreOff(ctx: Context, io: Io): void {
  const problems = ctx.inspect().errors.filter(({ where }) => where === 'dsh.yml')
  for (const { message } of problems) io.err.line(`note: ${inert(message)}`)
  for (const { id, state, reason, note } of ctx.get('loader')?.report() ?? []) {
    const isOff = state !== 'active' && state !== 'disabled'
    if (isOff) io.err.line(inert(`note: plugin "${id}" is ${state}: ${reason ?? 'no reason is known'}`))
    if (note !== undefined) io.err.line(inert(`note: plugin "${id}": ${note}`))
  }
}

/** Tells of plugins that fail where nobody waits for it, once `begin` was called and until the last of them has ended. */
export class PluginFailures {
  readonly #io: Io
  #hasBegun = false

  constructor(io: Io) {
    this.#io = io
  }

  /** To be heard from the first moment on: what listens last stops to listen first. */
  readonly listener: FailureListener = (error, name, where) => {
    if (this.#hasBegun)
      this.#io.err.line(inert(`note: plugin "${name}" failed (${where}): ${messageOf(error)}`))
  }

  /** What failed before is told with its row. From here on a failure ends nothing but the plugin itself. */
  begin(ctx: Context): void {
    this.#hasBegun = true
    this.#io.onUncaught(error => ctx.get('loader')?.reportUncaught(error) === true)
  }
}

/** Throws NO_STORE where nothing would be kept: a session that cannot be opened again is lost work. */
export function assertStore(ctx: Context, { home }: Pick<Io, 'home'>): void {
  if (ctx.get('sessionPersistence') !== undefined) return
  const rows = ctx.get('loader')?.report() ?? []
  const chosen = rows.find(({ id, state }) => id.startsWith('store-') && state !== 'disabled')
  const { id, reason, state } = chosen ?? { id: 'store-jsonl', reason: undefined, state: 'disabled' }
  throw new CliError('NO_STORE', `no session would be kept: plugin "${id}" is off (${reason ?? state})`, {
    fix: `mend or take away the row "${id}" of ${join(home, 'dsh.yml')}`,
  })
}
