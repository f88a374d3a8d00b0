import type { Context, PluginObject } from '../../kernel/index.ts'
import { FsError } from './errors.ts'
import { lastSeen, seenFiles } from './observed.ts'
import type { FsActor, FsObservation, FsTarget, FsTargetKey } from './service.ts'

/**
 * Read before write: a session may replace or edit a file only in the version it has seen.
 *
 * What a session saw in an earlier life, or inherited from the one it was forked from, is read from its log; what it
 * sees now is remembered beside it.
 */
export const fsPolicy: PluginObject = {
  name: 'fs-policy',
  apply(ctx: Context) {
    const memory = new WeakMap<object, Map<FsTargetKey, FsObservation>>()

    const observationOf = ({ targetKey }: FsTarget, { agent }: FsActor): FsObservation | undefined => {
      if (agent?.session === undefined) return undefined
      const seen = memory.get(agent.session)?.get(targetKey)
      if (seen !== undefined) return seen
      const version = lastSeen(agent.session.fold(seenFiles), targetKey)
      return version === undefined ? undefined : { kind: 'present', version }
    }

    ctx.on('fs/write-intent', async (target, actor) => {
      const seen = observationOf(target, actor)
      return seen?.kind === 'present'
        ? { kind: 'replaceIfVersion', version: seen.version }
        : { kind: 'createIfAbsent' }
    })
    ctx.on('fs/edit-intent', async (target, actor) => {
      const seen = observationOf(target, actor)
      if (seen?.kind === 'present') return { version: seen.version }
      const { displayPath } = target
      if (seen?.kind === 'absent') throw new FsError('FS_NOT_FOUND', `no file ${displayPath}`)
      throw new FsError('FS_NOT_OBSERVED', `${displayPath} has not been read`)
    })
    ctx.on('fs/observed', (target, observation, { agent }) => {
      if (agent?.session === undefined) return
      const files = memory.get(agent.session) ?? new Map<FsTargetKey, FsObservation>()
      memory.set(agent.session, files.set(target.targetKey, observation))
    })
  },
}
