import type { Agent } from '../../core/agent/index.ts'
import type { SessionQueries, SessionQuery } from './service.ts'

type Method = (...args: never[]) => Promise<unknown>

const queries = ['traceSession', 'traceEvent', 'readEvent', 'searchSessions', 'searchEvents'] as const
const methods = [
  ...queries,
  'listSessions',
  'overview',
  'readSession',
  'filterSessions',
  'readTitle',
  'readTitleSnapshot',
  'readTitleSnapshots',
  'listEvents',
  'filterEvents',
  'readSurface',
] as const satisfies readonly (keyof SessionQuery)[]

/** A query whose code is loaded with the first question. */
export function lazyQuery(load: () => Promise<SessionQuery>): SessionQuery {
  const later = <T extends object>(names: readonly (keyof T & string)[], target: () => Promise<T>): T => {
    const entries = names.map(name => [
      name,
      async (...args: never[]) => await ((await target())[name] as Method)(...args),
    ])
    return Object.fromEntries(entries) as T
  }
  return {
    ...later<Omit<SessionQuery, 'asCaller'>>(methods, load),
    asCaller: (agent: Agent) => later<SessionQueries>(queries, async () => (await load()).asCaller(agent)),
  }
}
