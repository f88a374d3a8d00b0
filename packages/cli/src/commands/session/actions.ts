import type { Command, Option } from '../../command.ts'

const json: Option = { type: 'boolean', about: 'print JSON, one object a line' }

/** What `dsh session` does, in the order of the help. */
export const sessionActions: readonly Command[] = [
  {
    name: 'session ls',
    usage: 'dsh session ls [--json]',
    about: 'List all sessions, newest first',
    options: { json },
    words: [],
    load: async () => (await import('./ls.ts')).ls,
  },
  {
    name: 'session show',
    usage: 'dsh session show ID',
    about: 'Print the transcript of one',
    options: {},
    words: ['ID'],
    load: async () => (await import('./show.ts')).show,
  },
  {
    name: 'session cat',
    usage: 'dsh session cat ID',
    about: 'Print the stored events of one, one JSON line each',
    options: {},
    words: ['ID'],
    load: async () => (await import('./cat.ts')).cat,
  },
]
