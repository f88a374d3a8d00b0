import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Fence } from '@dsh/harness/loader'
import { hasProjectParts, LocalTrust, projectParts } from '@dsh/harness/plugins/trust'
import type { ProjectPart, ProjectParts, TrustState } from '@dsh/harness/plugins/trust'
import { canAsk } from '../person.ts'
import { inert } from '../text.ts'
import type { Io } from '../io.ts'
import { askTrust, keepYes } from './ask.ts'
import { listed } from './text.ts'

const file = '.dsh/dsh.yml'

export interface ProjectComposition {
  readonly files: readonly string[]
  /** What these may load of the project. */
  readonly fence?: Fence
}

const nothing: ProjectComposition = { files: [] }

/**
 * The composition of the project in `folder`, where the person trusts it as it is now. Asked for once, where somebody can
 * be; else one line says what is not loaded.
 */
export async function projectFiles(folder: string, io: Io, signal: AbortSignal): Promise<ProjectComposition> {
  const { home } = io
  if (!hasProjectParts(folder, { home })) return nothing
  const trust = new LocalTrust(home)
  const found = projectParts(folder, { home })
  const state = await trust.stateOf(folder)
  const waiting = await trust.pending(folder, found.parts.filter(runs))
  const isChanged = state === 'trusted'
  const isOpen = isChanged ? waiting.length > 0 : state === 'undecided'
  const question = { folder, found, isChanged, signal }
  if (isOpen && canAsk(io)) {
    if (await askTrust(question, io)) {
      await keepYes(trust, question)
      return compositionIn(folder, found)
    }
    if (!isChanged) await trust.revoke(folder)
  }
  if (isChanged && waiting.length === 0) return compositionIn(folder, found)
  const { problem } = await trust.list()
  if (problem !== undefined) io.err.line(`note: ${inert(problem)}`)
  const left = isChanged ? waiting : found.parts
  if (left.length > 0)
    io.err.line(
      notLoaded(
        state,
        left.map(({ path }) => path),
        io,
      ),
    )
  return nothing
}

function runs({ kind }: ProjectPart): boolean {
  return kind !== 'instructions'
}

function compositionIn(folder: string, { parts }: ProjectParts): ProjectComposition {
  if (!parts.some(({ path }) => path === file)) return nothing
  const real = realpathSync(folder)
  const admitted = new Set(parts.filter(runs).map(({ path }) => join(real, path)))
  return { files: [join(folder, file)], fence: { folder: real, admitted } }
}

function notLoaded(state: TrustState, paths: readonly string[], { command }: Io): string {
  const why =
    state === 'trusted' ? 'they changed since this folder was trusted' : 'this folder is not trusted'
  return `note: not loaded, as ${why}: ${listed(paths)}; \`${command} trust\` shows them and asks`
}
