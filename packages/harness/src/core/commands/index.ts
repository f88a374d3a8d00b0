/** What a person may call by `/name`: registration, parsing and running, with beginning and end in the log. */
export * from './command.ts'
export * from './commands.ts'
export * from './images.ts'
