import type { ArgsOf, Context, EventNameOf, ResultOf } from '../../kernel/index.ts'
import { scopeTarget } from '../scope/index.ts'
import type { Agent } from './agent.ts'

type NameOf<Mode extends string> = EventNameOf<Mode> & `agent/${string}`
type PayloadOf<Name extends NameOf<string>> = Omit<ArgsOf<Name>[0], 'agent'>

/**
 * Dispatches `agent/*` events of one agent, always with that agent as subject and as scope.
 *
 * `emit` never throws, also where a check of `internal/dispatch` refuses: observers do not steer.
 */
export interface AgentEvents {
  emit<Name extends NameOf<'emit'>>(name: Name, payload: PayloadOf<Name>): void
  veto<Name extends NameOf<'veto'>>(name: Name, payload: PayloadOf<Name>): void
  serial<Name extends NameOf<'serial'>>(name: Name, payload: PayloadOf<Name>): Promise<unknown>
  waterfall<Name extends NameOf<'waterfall'>>(
    name: Name,
    payload: PayloadOf<Name>,
    inner: () => ResultOf<Name>,
  ): ResultOf<Name>
}

export function agentEvents(ctx: Context, agent: Agent): AgentEvents {
  const carrier = scopeTarget(agent)
  // The payload of each event has `agent`; that the two halves make the whole is beyond the compiler.
  const whole = <Name extends NameOf<string>>(payload: PayloadOf<Name>): ArgsOf<Name> =>
    [{ ...payload, agent }] as unknown as ArgsOf<Name>
  return {
    emit(name, payload) {
      try {
        ctx.emit(carrier, name, ...whole<typeof name>(payload))
      } catch (error) {
        ctx.fiber.report(error, name)
      }
    },
    veto: (name, payload) => ctx.veto(carrier, name, ...whole<typeof name>(payload)),
    serial: (name, payload) => ctx.serial(carrier, name, ...whole<typeof name>(payload)),
    waterfall: (name, payload, inner) =>
      ctx.waterfall(carrier, name, ...([...whole<typeof name>(payload), inner] as never)),
  }
}
