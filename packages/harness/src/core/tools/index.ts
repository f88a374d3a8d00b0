/** What a model may call: registration, the guarded pipeline of a call, and how text is bounded. */
export * from './omitted.ts'
export * from './text.ts'
export * from './tool.ts'
