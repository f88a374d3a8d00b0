import { KernelError } from './errors.ts'

// Shared by all copies, also those of other versions: a list of texts, in the order they were loaded.
const key = Symbol.for('dsh.kernel.copies')
const shared = globalThis as { [key]?: string[] }
const copies = (shared[key] ??= [])
if (!copies.includes(import.meta.url)) copies.push(import.meta.url)

/**
 * The URLs this process has loaded a kernel from. There should be one: plugins of several work together, but what a
 * module keeps to itself exists once in each, and so does the memory it takes.
 */
export function kernelCopies(): readonly string[] {
  return copies
}

/** What to tell once more copies are there than were `told`; at one there is nothing to tell. */
export function newsOfCopies(told: number): KernelError | undefined {
  if (copies.length === told) return undefined
  const list = copies.map(url => placeOf(url)).join(', ')
  return new KernelError(
    'SECOND_COPY',
    `${copies.length} copies of the kernel are loaded, where one is enough: ${list}`,
  )
}

/** The folder, which is what a person can remove. */
function placeOf(url: string): string {
  return decodeURI(url.replace(/^file:\/\//, '').replace(/\/[^/]*$/, ''))
}
