import type { Command, Option } from '../../command.ts'

const json: Option = { type: 'boolean', about: 'print JSON, one object a line' }

/** What `dsh session` does, in the order of the help. */
export const sessionActions: readonly Command[] = [
  {
    name: 'session ls',
    usage: 'dsh session ls [--all|--limit N] [--here] [--archived] [--json]',
    about: 'List sessions, newest first',
    options: {
      all: { type: 'boolean', about: 'list all, not only the newest 20' },
      limit: { type: 'string', value: 'N', about: 'list so many' },
      here: { type: 'boolean', about: 'list those of the current folder' },
      archived: { type: 'boolean', about: 'list archived ones too' },
      json: {
        type: 'boolean',
        about: 'print JSON with all there is to know, one object a line; all unless --limit',
      },
    },
    words: [],
    load: async () => (await import('./ls.ts')).ls,
  },
  {
    name: 'session search',
    usage: 'dsh session search TEXT [--here] [--limit N] [--json]',
    about: 'Find what was said or done, in whatever case',
    options: {
      here: { type: 'boolean', about: 'look into those of the current folder' },
      limit: { type: 'string', value: 'N', about: 'show so many sessions, 10 by default' },
      json,
    },
    words: ['TEXT'],
    notes: ['TEXT is looked for as it stands. ID#19 is event 19 of session ID.'],
    load: async () => (await import('./search.ts')).search,
  },
  {
    name: 'session show',
    usage: 'dsh session show ID [-f]',
    about: 'Print the transcript of one',
    options: {
      follow: {
        type: 'boolean',
        short: 'f',
        about: 'go on live, until Ctrl-C or until nobody has it open',
      },
    },
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
  {
    name: 'session at',
    usage: 'dsh session at ID SEQ [--diff SEQ|--file PATH] [--json]',
    about: 'Show a session as of one of its events: place, context, files and all that is derived',
    options: {
      diff: { type: 'string', value: 'SEQ', about: 'show what is different at this event' },
      file: { type: 'string', value: 'PATH', about: 'print what this file held then' },
      json: { type: 'boolean', about: 'print it as JSON' },
    },
    words: ['ID', 'SEQ'],
    notes: ['SEQ is the number of an event: 19, #19 or e19.'],
    load: async () => (await import('./at.ts')).at,
  },
  {
    name: 'session request',
    usage: 'dsh session request ID STEP [--diff STEP] [--json|--raw]',
    about: 'Show what the model was sent in a step, rebuilt from the log',
    options: {
      diff: {
        type: 'string',
        value: 'STEP',
        about: 'show what is different from this one, and where the cache broke',
      },
      json: { type: 'boolean', about: 'print it as JSON' },
      raw: { type: 'boolean', about: 'print the body that goes over the wire, without the key' },
    },
    words: ['ID', 'STEP'],
    notes: [
      'STEP is 2.1 (turn and step, the last attempt), 2.1.1 (its first attempt), 3 (the third request) or #19 (the',
      'request that event 19 belongs to).',
    ],
    load: async () => (await import('./request.ts')).request,
  },
  {
    name: 'session export',
    usage: 'dsh session export ID [--format FORMAT] [-o FILE] [--full]',
    about: 'Print one as Markdown, HTML or JSONL, without what looks like a secret',
    options: {
      format: { type: 'string', value: 'FORMAT', about: 'md (default), html or jsonl' },
      output: {
        type: 'string',
        short: 'o',
        value: 'FILE',
        about: 'write to FILE, whose ending names the format',
      },
      full: { type: 'boolean', about: 'take nothing out, as an import needs it that goes on' },
    },
    words: ['ID'],
    load: async () => (await import('./export.ts')).exportSession,
  },
  {
    name: 'session import',
    usage: 'dsh session import FILE',
    about: 'Store a session that was exported as JSONL',
    options: {},
    words: ['FILE'],
    load: async () => (await import('./import.ts')).importSession,
  },
  {
    name: 'session archive',
    usage: 'dsh session archive ID [--undo]',
    about: 'Leave one out of lists until it is worked on again',
    options: { undo: { type: 'boolean', about: 'bring it back' } },
    words: ['ID'],
    load: async () => (await import('./archive.ts')).archive,
  },
  {
    name: 'session rename',
    usage: 'dsh session rename ID TITLE...',
    about: 'Give one a title',
    options: {},
    load: async () => (await import('./rename.ts')).rename,
  },
  {
    name: 'session stats',
    usage: 'dsh session stats [ID] [--json]',
    about: 'Count steps, time and tokens of one, or of all by day, model and folder',
    options: { json: { type: 'boolean', about: 'print it as JSON' } },
    words: ['[ID]'],
    load: async () => (await import('./stats.ts')).stats,
  },
  {
    name: 'session rm',
    usage: 'dsh session rm ID... [--yes]',
    about: 'Remove sessions for good',
    options: { yes: { type: 'boolean', about: 'do not ask' } },
    load: async () => (await import('./rm.ts')).rm,
  },
  {
    name: 'session test',
    usage: 'dsh session test record ID [FILE] | dsh session test run FILE… [--update]',
    about: 'Make a session a test that needs no key, and run such tests',
    options: {
      update: { type: 'boolean', about: 'write the requests as they are now into the files' },
    },
    notes: [
      'record  writes the inputs, answers and results of a session, and what it asked, without secrets',
      'run     gives them again to what is set up now; every request must be the recorded one',
    ],
    load: async () => (await import('./test.ts')).test,
  },
  {
    name: 'session fork',
    usage: 'dsh session fork ID [SEQ]',
    about: 'Make a new session of the events up to SEQ, by default of all',
    options: {},
    words: ['ID', '[SEQ]'],
    notes: ['Prints the new ID. Files stay as they are; `dsh rewind` takes them back.'],
    load: async () => (await import('./fork.ts')).fork,
  },
  {
    name: 'session verify',
    usage: 'dsh session verify [ID|--all] [--json]',
    about: 'Check every byte of one, its order, and that its requests can be made again',
    options: {
      all: { type: 'boolean', about: 'check all of them; exit code 1 where one has a problem' },
      json,
    },
    words: ['[ID]'],
    load: async () => (await import('./verify.ts')).verify,
  },
  {
    name: 'session repair',
    usage: 'dsh session repair ID',
    about: 'Put the sound beginning of a damaged log in its place; the old file is kept',
    options: {},
    words: ['ID'],
    notes: ['What another program wrote into the log becomes a session of its own.'],
    load: async () => (await import('./repair.ts')).repair,
  },
]
