import type { SessionId } from '@dsh/protocol'
import { notFound, SessionQueryError } from './errors.ts'
import { isReadable } from './service.ts'
import type { Lineage, LineageNode, SessionEntry, SessionRecord } from './service.ts'

/** Who a session was forked from and what was forked from it. Throws INVALID_LINEAGE where a session is its own ancestor. */
export function lineageOf(id: SessionId, entries: readonly SessionEntry[]): Lineage {
  const records = new Map(entries.filter(isReadable).map(record => [record.id, record]))
  const own = records.get(id)
  if (own === undefined) throw notFound(id)
  const ancestors: SessionRecord[] = []
  const seen = new Set([id])
  let at = own
  for (;;) {
    const { parentSession } = at.header
    if (parentSession === undefined) break
    if (seen.has(parentSession)) throw circular(parentSession)
    seen.add(parentSession)
    const parent = records.get(parentSession)
    if (parent === undefined)
      return {
        ancestors,
        descendants: descendantsOf(own, records),
        origin: { complete: false, unresolvedParentId: parentSession },
      }
    ancestors.push(parent)
    at = parent
  }
  return { ancestors, descendants: descendantsOf(own, records), origin: { complete: true, root: at.id } }
}

interface GrowingNode extends LineageNode {
  readonly children: GrowingNode[]
}

/** Without recursion: a line of forks may be as long as it likes. */
function descendantsOf(
  own: SessionRecord,
  records: ReadonlyMap<SessionId, SessionRecord>,
): readonly LineageNode[] {
  const byParent = Map.groupBy(records.values(), ({ header }) => header.parentSession)
  const root: GrowingNode = { record: own, children: [] }
  const seen = new Set([own.id])
  const open = [root]
  for (const node of open) {
    const children = (byParent.get(node.record.id) ?? []).toSorted(
      (a, b) => a.header.createdAt - b.header.createdAt,
    )
    for (const record of children) {
      if (seen.has(record.id)) throw circular(record.id)
      seen.add(record.id)
      const child: GrowingNode = { record, children: [] }
      node.children.push(child)
      open.push(child)
    }
  }
  return root.children
}

function circular(id: SessionId): SessionQueryError {
  return new SessionQueryError(
    'SESSION_QUERY_INVALID_LINEAGE',
    `session "${id}" is said to be its own ancestor`,
  )
}
