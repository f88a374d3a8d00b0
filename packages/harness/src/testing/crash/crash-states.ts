import { emptyFile } from './disk.ts'
import type { Disk, FileNode, FolderNode } from './disk.ts'
import type { ModelFileSystem, TraceStep } from './model-file-system.ts'
import type { Random } from './random.ts'

/** What a program, or the power, that went away at one moment leaves. */
export interface CrashState {
  readonly kind: 'killed' | 'power lost'
  /** How many calls of the trace are done. */
  readonly step: number
  /** The moment and what became of everything that was not synced, for people. */
  readonly text: string
  readonly disk: Disk
}

type Trace = Pick<ModelFileSystem, 'start' | 'trace'>

/** Every state that a killed program leaves: behind each call, and one in the middle of each write. */
export function killStates({ start, trace }: Trace, random: Random): readonly CrashState[] {
  const kind = 'killed'
  const states: CrashState[] = [{ kind, step: 0, text: 'killed before its first call', disk: start }]
  for (const [index, step] of trace.entries()) {
    const before = trace[index - 1]?.disk ?? start
    const torn = tornWrite(before, step, random)
    if (torn !== undefined) states.push({ kind, step: index, ...torn })
    states.push({ kind, step: index + 1, text: `killed behind ${nameOf(step, index)}`, disk: step.disk })
  }
  return states
}

function tornWrite(
  before: Disk,
  step: TraceStep,
  random: Random,
): Pick<CrashState, 'text' | 'disk'> | undefined {
  const { call, inode = 0, path, disk } = step
  const node = disk.get(inode)
  if (call !== 'write' || node?.kind !== 'file') return undefined
  const old = before.get(inode)
  const { length } = old?.kind === 'file' ? old.content : emptyFile.content
  const written = node.content.length - length
  if (written < 2) return undefined
  const part = 1 + random.below(written - 1)
  const torn = new Map(before).set(inode, { ...node, content: node.content.subarray(0, length + part) })
  return { text: `killed after ${part} of ${written} bytes of the write to ${path}`, disk: torn }
}

/** `count` states that a power failure may leave, spread over the whole trace. */
export function powerLossStates(
  { start, trace }: Trace,
  random: Random,
  count: number,
): readonly CrashState[] {
  return Array.from({ length: count }, (_, index) => {
    const step = Math.min(
      trace.length,
      Math.floor(((index + random.below(100) / 100) * (trace.length + 1)) / count),
    )
    const last = trace[step - 1]
    const where = last === undefined ? 'before the first call' : `behind ${nameOf(last, step - 1)}`
    const { disk, text } = losePower(last?.disk ?? start, random)
    return { kind: 'power lost', step, text: `the power failed ${where}: ${text}`, disk }
  })
}

/** What a power failure leaves of a disk: everything that was synced, and of the rest whatever chance gives. */
export function losePower(disk: Disk, random: Random): { readonly disk: Disk; readonly text: string } {
  const left = new Map(disk)
  const texts: string[] = []
  // In every second case nothing more than what was synced is left: that is what barriers are for.
  const isHard = random.below(2) === 0
  for (const [inode, node] of disk) {
    if (node.kind === 'file') {
      if (node.content === node.synced) continue
      const fate = isHard ? 'absent' : random.pick(fates)
      const content = contentAfter(node, fate, random)
      left.set(inode, { ...node, content, synced: content, intact: content.length })
      texts.push(`file ${inode} ${fate} (${content.length} of ${node.synced.length}→${node.content.length})`)
    } else if (node.unsynced.size > 0) {
      left.set(inode, loseEntries(node, texts, isHard ? undefined : random))
    }
  }
  return { disk: left, text: texts.length === 0 ? 'all was synced' : texts.join(', ') }
}

const fates = ['absent', 'full', 'prefix', 'zeros', 'garbage', 'holes'] as const

/** What of a file's unsynced bytes reached the disk. */
function contentAfter(node: FileNode, fate: (typeof fates)[number], random: Random): Buffer {
  const { content, synced, intact } = node
  const changed = content.length - intact
  if (fate === 'absent') return synced
  if (fate === 'full' || changed === 0) return content
  if (fate === 'prefix') return content.subarray(0, intact + random.below(changed))
  const left = Buffer.from(content)
  if (fate === 'zeros') left.fill(0, intact)
  else if (fate === 'garbage') random.bytes(changed).copy(left, intact)
  else punchHoles(left, intact, random)
  return left
}

const sector = 512

/** Each sector reached the disk or did not, in any order. */
function punchHoles(bytes: Buffer, from: number, random: Random): void {
  for (let at = from; at < bytes.length; at = (Math.floor(at / sector) + 1) * sector) {
    const end = Math.min(bytes.length, (Math.floor(at / sector) + 1) * sector)
    if (random.below(2) === 0) bytes.fill(0, at, end)
  }
}

function loseEntries(folder: FolderNode, texts: string[], random: Random | undefined): FolderNode {
  const entries = new Map(folder.synced)
  for (const [name, history] of folder.unsynced) {
    const outcome =
      random === undefined ? folder.synced.get(name) : random.pick([folder.synced.get(name), ...history])
    if (outcome === undefined) entries.delete(name)
    else entries.set(name, outcome)
    texts.push(`${name} ${outcome === undefined ? 'absent' : `= file ${outcome}`}`)
  }
  return { ...folder, entries, synced: entries, unsynced: new Map() }
}

function nameOf({ call, path }: TraceStep, index: number): string {
  return `call ${index + 1}, ${call} ${path}`
}
