import { HarnessError, isText, Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import type { ToolExecution } from '../../core/tools/index.ts'

/** On whose behalf a process is started. */
export type EnvironmentReader = Pick<ToolExecution, 'agent'>

/** Variables that one plugin gives to the commands of sessions. */
export interface EnvironmentContributor {
  readonly name: string
  /** Every variable it may give, as `DSH_` and capitals. */
  readonly variables: Readonly<Record<string, { readonly description: string }>>
  /** The values for one command; a variable that is left out is not set. */
  resolve(reader: EnvironmentReader): Readonly<Record<string, string>>
}

export interface EnvironmentVariable {
  readonly name: string
  readonly description: string
  readonly contributor: string
}

export class BashEnvironmentError extends HarnessError<'INVALID_VARIABLES'> {
  static {
    this.prototype.name = 'BashEnvironmentError'
  }
}

declare module '../../kernel/index.ts' {
  interface Services {
    bashEnv: BashEnvironment
  }
}

const validName = /^DSH_[A-Z][A-Z0-9_]*$/
/** Names a process tree for its end. */
const reserved = new Set(['DSH_PROCESS'])

/** What the harness tells the commands that it runs, as `ctx.bashEnv`; nothing else named DSH_* reaches them. */
export class BashEnvironment extends Service {
  private readonly own: Context
  private readonly contributors = new Map<string, EnvironmentContributor>()

  constructor(ctx: Context, home: string | undefined) {
    super(ctx, 'bashEnv')
    this.own = ctx
    this.contributors.set('dsh', builtIn(home))
  }

  /** For as long as the caller is there. Throws INVALID_VARIABLES for what is blank, malformed or taken. */
  register(contributor: EnvironmentContributor): Disposer {
    const { contributors } = this
    const { name, variables } = contributor
    if (name.trim() === '') throw invalid('a contributor needs a name')
    if (contributors.has(name)) throw invalid(`"${name}" contributes variables already`)
    for (const [variable, { description }] of Object.entries(variables)) {
      if (!validName.test(variable) || reserved.has(variable))
        throw invalid(`"${name}" cannot give a variable "${variable}"`)
      if (!isText(description)) throw invalid(`"${name}" does not say what "${variable}" is`)
      const owner = this.list().find(each => each.name === variable)?.contributor
      if (owner !== undefined) throw invalid(`"${variable}" is given by "${owner}" already`)
    }
    return this.ctx.effect(() => {
      contributors.set(name, contributor)
      return () => void contributors.delete(name)
    }, `variables of ${name}`)
  }

  /** In code-unit order. */
  list(): readonly EnvironmentVariable[] {
    return [...this.contributors.values()]
      .flatMap(({ name: contributor, variables }) =>
        Object.entries(variables).map(([name, { description }]) => ({ name, description, contributor })),
      )
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The variables of one command, frozen and in code-unit order. A contributor that fails costs only its own. */
  collect(reader: EnvironmentReader): Readonly<Record<string, string>> {
    const entries = [...this.contributors.values()].flatMap(contributor => {
      try {
        return entriesOf(contributor, reader)
      } catch (error) {
        this.own.fiber.report(error, `variables of ${contributor.name}`)
        return []
      }
    })
    return Object.freeze(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))))
  }
}

function entriesOf({ name, variables, resolve }: EnvironmentContributor, reader: EnvironmentReader) {
  const entries = Object.entries(resolve(reader))
  for (const [variable, value] of entries as [string, unknown][]) {
    if (!Object.hasOwn(variables, variable)) throw invalid(`"${name}" did not declare "${variable}"`)
    if (typeof value !== 'string' || value.includes('\0'))
      throw invalid(`"${name}" gave no text for "${variable}"`)
  }
  return entries
}

function builtIn(home: string | undefined): EnvironmentContributor {
  return {
    name: 'dsh',
    variables: {
      DSH_HOME: { description: 'where the harness keeps its files' },
      DSH_SESSION_ID: { description: 'the session that runs the command' },
      DSH_SHELL: { description: '1 in every command of the harness' },
    },
    resolve: ({ agent }) => ({
      ...(home !== undefined && { DSH_HOME: home }),
      ...(agent !== undefined && { DSH_SESSION_ID: agent.session.id }),
      DSH_SHELL: '1',
    }),
  }
}

function invalid(message: string): BashEnvironmentError {
  return new BashEnvironmentError('INVALID_VARIABLES', message)
}
