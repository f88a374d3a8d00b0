/** The wire and the facts: what a log holds and what a model is sent. Loads in a browser. */
export * from './events.ts'
export * from './messages.ts'
