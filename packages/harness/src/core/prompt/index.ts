/** What a request says besides its messages: sections, runtime contexts, variables, and the order of tools. */
export * from './errors.ts'
export * from './offered.ts'
export * from './prompt.ts'
export * from './render.ts'
export * from './system-prompt.ts'
export type { SystemPromptConfig } from './config.ts'
export { unlistedTools } from './tool-order.ts'
