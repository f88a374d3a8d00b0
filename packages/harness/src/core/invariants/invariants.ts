import type { SessionEvent } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { AsyncDisposer, ConfigSchema, Context, Disposer } from '../../kernel/index.ts'
import { NamedEntries } from '../scope/index.ts'
import type { Session } from '../session/index.ts'
import type { Companion } from './companion.ts'
import { companions } from './companions.ts'
import { configSchema } from './config.ts'
import type { CheckedConfig, InvariantsConfig } from './config.ts'
import { InvariantError } from './errors.ts'
import { lintLog, logChecks } from './lint.ts'
import { LogReader } from './log-check.ts'
import type { LogCheck, LogViolation } from './log-check.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    invariants: Invariants
  }
}

interface RunningCheck {
  readonly check: LogCheck
  readonly readers: WeakMap<Session, LogReader>
}

/**
 * Rules of the harness, checked while it runs: those about logs, event by event, and companions for the rest.
 *
 * Meant for development and tests; nothing depends on it.
 */
export class Invariants extends Service {
  static readonly inject = ['sessions']

  static get Config(): ConfigSchema<InvariantsConfig | undefined, CheckedConfig> {
    return configSchema()
  }

  private readonly own: Context
  private readonly config: CheckedConfig
  private readonly names = new NamedEntries<undefined>('check')
  private readonly running = new Set<RunningCheck>()

  constructor(ctx: Context, config: CheckedConfig) {
    super(ctx, 'invariants')
    this.own = ctx
    this.config = config
    for (const check of logChecks) this.registerLogCheck(check)
    for (const [name, companion] of Object.entries(companions)) this.register(name, companion)
    if (!config.enabled) return
    if (config.mode === 'refuse') {
      ctx.on('internal/dispatch', (_mode, name, args) => {
        if (name === 'session/event') this.refuse(...(args as [Session, SessionEvent]))
      })
    } else ctx.on('session/event', (session, event) => this.observe(session, event), { global: true })
  }

  /** Checks logs by one more rule, for as long as the caller is there. A name is taken once, also where it is filtered. */
  registerLogCheck(check: LogCheck): Disposer {
    const { names, running } = this
    return this.ctx.effect(() => {
      const release = names.add(check.name, undefined)
      const entry: RunningCheck = { check, readers: new WeakMap() }
      if (this.isWanted(check.name)) running.add(entry)
      return () => {
        running.delete(entry)
        release()
      }
    }, `check ${check.name}`)
  }

  /** Installs a companion in a plugin of its own, which ends with the caller. */
  register(name: string, companion: Companion): AsyncDisposer {
    const { names } = this
    const { ctx } = this
    const { inject = [], install } = companion
    const isWanted = this.isWanted(name)
    const fail = (message: string): void => this.fail(new InvariantError(name, message))
    return ctx.effect(function* () {
      yield names.add(name, undefined)
      if (!isWanted) return
      const apply = (own: Context): void => install(own, fail)
      const fiber = ctx.plugin({ name: `check ${name}`, inject, apply }, undefined, { wait: true })
      if (fiber.state === 'failed') {
        const { error } = fiber
        void fiber.dispose()
        throw error
      }
      yield () => fiber.dispose()
    }, `check ${name}`)
  }

  /** What is wrong with the log of a session by the rules that run now. */
  lint(session: Session): readonly LogViolation[] {
    return lintLog(
      session.since(0),
      [...this.running].map(({ check }) => check),
    )
  }

  private isWanted(name: string): boolean {
    const { enabled, allow, block } = this.config
    const matches = (pattern: string): boolean => new RegExp(pattern).test(name)
    return enabled && !block.some(matches) && (allow.length === 0 || allow.some(matches))
  }

  /** Before the commit; what is in the log already is only reported. */
  private refuse(session: Session, event: SessionEvent): void {
    for (const { check, readers } of this.running) {
      const reader = this.caughtUp(session, event.seq, { check, readers })
      const violation = reader.look(event)
      if (violation !== undefined) throw toError(session, violation)
    }
  }

  private observe(session: Session, event: SessionEvent): void {
    for (const entry of this.running) this.caughtUp(session, event.seq + 1, entry)
  }

  private caughtUp(session: Session, end: number, { check, readers }: RunningCheck): LogReader {
    const reader = readers.get(session) ?? new LogReader(check)
    readers.set(session, reader)
    while (reader.next < end) {
      const event = session.at(reader.next)
      if (event === undefined) break
      const violation = reader.read(event)
      if (violation !== undefined) this.own.fiber.report(toError(session, violation), `check ${check.name}`)
    }
    return reader
  }

  private fail(error: InvariantError): void {
    if (this.config.mode === 'refuse') throw error
    this.own.fiber.report(error, `check ${error.check}`)
  }
}

function toError(session: Session, { check, seq, type, message }: LogViolation): InvariantError {
  return new InvariantError(check, `event ${seq} ("${type}") of session "${session.id}": ${message}`)
}
