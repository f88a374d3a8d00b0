/** What crash tests of stores are made with: a disk that loses power, what must be left, and whether it is. */
export * from './crash-states.ts'
export type { Disk } from './disk.ts'
export { filesOf, withFile } from './disk.ts'
export * from './examine.ts'
export * from './ledger.ts'
export * from './model-file-system.ts'
export * from './random.ts'
