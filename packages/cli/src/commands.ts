import type { Command, CommandGroup, Option } from './command.ts'
import { permissionActions } from './commands/permission/actions.ts'
import { sessionActions } from './commands/session/actions.ts'

const json: Option = { type: 'boolean', about: 'print JSON, one object a line' }

export const commands: readonly (Command | CommandGroup)[] = [
  {
    name: 'run',
    usage: 'dsh run [OPTIONS] [PROMPT]',
    about: 'Work on one task and print the answer',
    options: {
      model: {
        type: 'string',
        short: 'm',
        value: 'PROVIDER/MODEL',
        about: 'ask this model, and keep it as the default',
      },
      directory: {
        type: 'string',
        short: 'C',
        value: 'DIR',
        about: 'work in DIR instead of the current folder',
      },
      continue: { type: 'boolean', short: 'c', about: 'go on with the newest session of the folder' },
      resume: {
        type: 'string',
        short: 'r',
        value: 'ID',
        about: 'go on with this session; a unique beginning is enough',
      },
      permission: {
        type: 'string',
        value: 'MODE',
        about: 'read-only, workspace-write (default) or full-access; a session keeps it',
      },
      yes: { type: 'boolean', about: 'allow what would be asked, but nothing beyond the sandbox' },
      json: {
        type: 'boolean',
        about: "print the session's events, one a line, and a last line with the outcome",
      },
      schema: {
        type: 'string',
        value: 'FILE',
        about: 'the answer must be JSON that fits the JSON Schema in FILE',
      },
      'max-cost': { type: 'string', value: 'USD', about: 'stop before a request once this much is spent' },
      'max-tokens': {
        type: 'string',
        value: 'N',
        about: 'stop once N tokens are used, cached ones included',
      },
      'max-turns': { type: 'string', value: 'N', about: 'ask the model at most N times' },
      'max-time': {
        type: 'string',
        value: 'SECONDS',
        about: 'stop after so long, also in the middle of a tool',
      },
    },
    notes: [
      'Without PROMPT, or with -, the prompt is read from standard input; with one, standard input is left alone.',
      'The answer goes to standard output, everything else to standard error.',
      '',
      'Exit codes: 0 ok, 1 failed, 2 usage, 3 no credential, 4 denied, 5 provider, 130 cancelled.',
    ],
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'session',
    about: 'Find, read, change and check stored sessions',
    actions: sessionActions,
    notes: ['A unique beginning of the ID is enough.'],
  },
  {
    name: 'permission',
    about: 'Say and explain what tools may do without a question, and what never',
    actions: permissionActions,
    notes: [
      'Deny is stronger than ask, and ask than allow. `dsh run --permission MODE` sets the mode of a session.',
      '',
    ],
  },
  {
    name: 'rewind',
    usage: 'dsh rewind [ID] [SEQ] [--files|--conversation] [--preview] [--yes] [--json]',
    about: 'Take files and conversation back to an earlier event',
    options: {
      files: { type: 'boolean', about: 'take the files back alone' },
      conversation: { type: 'boolean', about: 'take the conversation back alone' },
      both: { type: 'boolean', about: 'take both back (default)' },
      overwrite: { type: 'boolean', about: 'write files that you changed yourself too' },
      undo: { type: 'boolean', about: 'take the last rewind back' },
      preview: { type: 'boolean', about: 'only show what would be done' },
      yes: { type: 'boolean', about: 'do it without asking' },
      json,
    },
    words: ['[ID]', '[SEQ]'],
    notes: [
      'Without SEQ it lists what can be taken back; SEQ is the first event that goes.',
      'Without ID it is the newest session of the current folder. A unique beginning of the ID is enough.',
      'The conversation goes on in a new session; the old one stays. Files that you changed since are kept.',
    ],
    load: async () => (await import('./commands/rewind.ts')).rewind,
  },
  {
    name: 'replay',
    usage: 'dsh replay ID --model PROVIDER/MODEL [OPTIONS]',
    about: 'Give the inputs of a session to another model, and compare',
    options: {
      model: { type: 'string', short: 'm', value: 'PROVIDER/MODEL', about: 'give them to this model' },
      from: {
        type: 'string',
        value: 'SEQ',
        about: 'go on from the turn of this event instead of beginning anew',
      },
      tools: {
        type: 'string',
        value: 'HOW',
        about:
          'recorded (default): answer calls from the log, stop at the first other one; live: run them in a copy',
      },
      directory: {
        type: 'string',
        short: 'C',
        value: 'DIR',
        about: 'work in DIR, with live tools on its files',
      },
      yes: {
        type: 'boolean',
        about: 'allow what would be asked of live tools, but nothing beyond the sandbox',
      },
      json: { type: 'boolean', about: 'print the comparison as JSON' },
    },
    words: ['ID'],
    notes: [
      'A new session is stored; the old one stays as it is. Live tools work in a copy of the folder as it was then, where',
      'restore points were kept. They may do what tools of a run may, in their sandbox.',
      '',
      'Exit codes: as of dsh run; 1 also where a call was another one than recorded.',
    ],
    load: async () => (await import('./commands/replay.ts')).replay,
  },
  {
    name: 'trust',
    usage: 'dsh trust [DIR] [--yes] | dsh trust ls | dsh trust rm DIR',
    about: 'Say which folders may bring plugins, hooks, servers and instructions',
    options: {
      yes: { type: 'boolean', about: 'trust the folder without asking' },
      json,
    },
    notes: [
      'Without DIR it is the current folder; a folder that is called ls is ./ls.',
      'What runs is trusted as it is now: when such a file changes, it is asked for again.',
      'A folder below a trusted one is trusted too, unless it is a repository of its own.',
    ],
    load: async () => (await import('./commands/trust.ts')).trust,
  },
  {
    name: 'models',
    usage: 'dsh models',
    about: 'List the models and say which have a key',
    options: { json },
    load: async () => (await import('./commands/models.ts')).models,
  },
  {
    name: 'plugin',
    usage: 'dsh plugin why [NAME]',
    about: 'Tell which plugins run, and why one does not',
    options: { json },
    notes: [
      'why  what the plugin waits for, provides, did and failed at; without NAME a line for each',
      '',
      'Plugins are added, configured and switched off in dsh.yml in the home folder (DSH_HOME, else ~/.dsh).',
    ],
    load: async () => (await import('./commands/plugin.ts')).plugin,
  },
  {
    name: 'doctor',
    usage: 'dsh doctor [--deep] [--json]',
    about: 'Say what is broken here, and what mends it; changes nothing',
    options: {
      deep: { type: 'boolean', about: 'check every byte of every session too' },
      json: { type: 'boolean', about: 'print {check, state, code, detail, fix}, one JSON object a line' },
    },
    words: [],
    notes: [
      'ok, note (passed over, or worth to know) or problem; below it what mends it. No secret is printed.',
      '',
      'Exit codes: 0 no problem, 1 a problem.',
    ],
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
]
