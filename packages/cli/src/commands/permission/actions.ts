import type { Command, Option } from '../../command.ts'

const json: Option = { type: 'boolean', about: 'print JSON, one object a line' }
const subject = {
  write: { type: 'string', value: 'PATH', about: 'speak of writing PATH; of a folder with all below it' },
  host: { type: 'string', value: 'HOST', about: 'speak of fetching from HOST, *.HOST for all below it' },
  foreign: { type: 'string', value: 'NAME', about: 'speak of what nobody here can look into, by its name' },
} as const satisfies Record<string, Option>
const place = {
  directory: {
    type: 'string',
    short: 'C',
    value: 'DIR',
    about: 'for sessions in DIR or below instead of the current folder',
  },
  everywhere: { type: 'boolean', about: 'for all sessions' },
  json,
} as const satisfies Record<string, Option>

const wordsNote = 'WORDS are what a command begins with. Write -- before words with a dash: dsh permission'

function restricting(word: 'ask' | 'deny', about: string): Command {
  return {
    name: `permission ${word}`,
    usage: `dsh permission ${word} WORDS…|--write PATH|--host HOST|--foreign NAME [OPTIONS]`,
    about,
    options: { ...subject, ...place },
    notes: [
      `${wordsNote} ${word} -- git push --force`,
      'Programs that a command starts are not looked into: what must never be reached, the sandbox keeps away.',
    ],
    load: async () => (await import('./add.ts')).adding(word),
  }
}

/** What `dsh permission` does, in the order of the help. */
export const permissionActions: readonly Command[] = [
  {
    name: 'permission ls',
    usage: 'dsh permission ls [--here] [--session ID] [--json]',
    about: 'List the rules, or what was allowed for one session',
    options: {
      here: { type: 'boolean', about: 'list those that count in the current folder' },
      session: { type: 'string', value: 'ID', about: 'list what was allowed for this session' },
      json,
    },
    words: [],
    load: async () => (await import('./ls.ts')).ls,
  },
  {
    name: 'permission why',
    usage: 'dsh permission why [OPTIONS] COMMAND | dsh permission why [OPTIONS] --tool write PATH',
    about: 'Say what would become of a call, and why; runs nothing',
    options: {
      tool: {
        type: 'string',
        value: 'NAME',
        about: 'judge a call of this tool; words are its path, address or JSON',
      },
      access: { type: 'string', value: 'ACCESS', about: 'as if the command asked for this' },
      session: { type: 'string', value: 'ID', about: 'as in this session instead of a new one' },
      directory: {
        type: 'string',
        short: 'C',
        value: 'DIR',
        about: 'as in DIR instead of the current folder',
      },
      json: { type: 'boolean', about: 'print it as JSON' },
    },
    takesCommand: true,
    notes: [
      'One word is read by a shell as it is: dsh permission why "make && git push". Several are one command.',
      'ACCESS is workspace-write, network or full-access.',
    ],
    load: async () => (await import('./why.ts')).why,
  },
  {
    name: 'permission allow',
    usage: 'dsh permission allow WORDS… --access ACCESS|--write PATH|--host HOST|--foreign NAME [OPTIONS]',
    about: 'Let something go further than its mode without a question',
    options: {
      access: { type: 'string', value: 'ACCESS', about: 'how far the command may go' },
      exact: { type: 'boolean', about: 'nothing may follow WORDS' },
      ...subject,
      ...place,
    },
    notes: [
      `${wordsNote} allow --access network -- npm publish --dry-run`,
      'ACCESS is workspace-write, network (that, and the network) or full-access (no sandbox). In the sandbox commands run',
      'without a question, so a rule that allows one says how far beyond it goes.',
    ],
    load: async () => (await import('./add.ts')).adding('allow'),
  },
  restricting('ask', 'Ask before something in every mode, whatever else allows it'),
  restricting('deny', 'Refuse something in every mode, whatever else allows it'),
  {
    name: 'permission rm',
    usage: 'dsh permission rm RULE… | dsh permission rm --session ID',
    about: 'Take rules away, or all that was allowed for one session',
    options: {
      session: { type: 'string', value: 'ID', about: 'forget what was allowed for this session' },
    },
    load: async () => (await import('./rm.ts')).rm,
  },
]
