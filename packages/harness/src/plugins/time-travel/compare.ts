import type { EpochHeader, SessionEventType } from '@dsh/protocol'
import type { SessionView } from '../../core/session/index.ts'
import { bytesOf, piecesOf } from './canonical.ts'
import type { RequestPart, RequestParts, RequestPiece } from './canonical.ts'
import type { RebuiltRequest } from './rebuild.ts'

/** Why a provider that has the one request in its cache cannot use all of it for the other. */
export type CacheBreak =
  | { readonly kind: 'route'; readonly before: string; readonly after: string }
  | { readonly kind: 'config'; readonly before: string; readonly after: string }
  | {
      readonly kind: 'tools'
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
      /** Only their order is another. */
      readonly reordered: boolean
    }
  | { readonly kind: 'system' }
  | {
      readonly kind: 'history'
      /** The first message that is another one. */
      readonly index: number
      /** What took the place of earlier messages there. */
      readonly replacedBy?: {
        readonly seq: number
        readonly type: SessionEventType
        readonly start: number
        readonly end: number
      }
    }

/** Where two requests part: the texts of both from shortly before that place on. */
export interface FirstDifference {
  readonly part: RequestPart
  readonly index: number
  /** Undefined where that request has nothing there. */
  readonly before: string | undefined
  readonly after: string | undefined
}

export interface RequestComparison {
  /** Bytes of the beginning that both share, which a cache of the one serves for the other. */
  readonly sharedBytes: number
  readonly beforeBytes: number
  readonly afterBytes: number
  /** Messages that both begin with. */
  readonly sharedMessages: number
  /** Undefined where they are the same. */
  readonly first?: FirstDifference
  /** Undefined where one is the beginning of the other: the cache is of use to its end. */
  readonly broken?: CacheBreak
  /** Fields of the config that differ without any harm to a cache: `maxTokens 100 → 200`. */
  readonly harmless: readonly string[]
}

/** What is different in `after`, and what of `before` a cache still serves. */
export function compareRequests(
  before: RebuiltRequest,
  after: RebuiltRequest,
  session: Pick<SessionView, 'at'>,
): RequestComparison {
  const [a, b] = [piecesOf(before.request), piecesOf(after.request)]
  const at = partAt(a, b)
  const parting = partingOf(a[at], b[at])
  const shared = a.slice(0, at)
  const facts = {
    sharedBytes: bytesOf(shared) + (parting?.sharedBytes ?? 0),
    beforeBytes: bytesOf(a),
    afterBytes: bytesOf(b),
    sharedMessages: shared.filter(({ part }) => part === 'messages').length,
    harmless: harmlessChanges(before.header, after.header),
  }
  if (parting === undefined) return facts
  const { first } = parting
  if (parting.isEnd) return { ...facts, first }
  return { ...facts, first, broken: breakOf(first, { before, after, session }) }
}

/** Where two requests part; undefined where they begin alike to the end of both. */
export function firstDifference(before: RequestParts, after: RequestParts): FirstDifference | undefined {
  const [a, b] = [piecesOf(before), piecesOf(after)]
  const at = partAt(a, b)
  return partingOf(a[at], b[at])?.first
}

function partAt(a: readonly RequestPiece[], b: readonly RequestPiece[]): number {
  let at = 0
  while (at < a.length && at < b.length && isSame(a[at], b[at])) at++
  return at
}

interface Parting {
  readonly first: FirstDifference
  /** Of the two pieces there. */
  readonly sharedBytes: number
  /** One of the requests ends there. */
  readonly isEnd: boolean
}

/** How two requests part at these pieces; undefined where both are at their end. */
function partingOf(left: RequestPiece | undefined, right: RequestPiece | undefined): Parting | undefined {
  // Pieces stand in the order of their parts, so the earlier part is the one that the other request lacks.
  const isLeft = right === undefined || (left !== undefined && rank(left) <= rank(right))
  const named = isLeft ? left : right
  if (named === undefined) return undefined
  const [before = '', after = ''] = [left, right].map(piece => (piece?.part === named.part ? piece.text : ''))
  const common = commonLength(before, after)
  const from = (piece: RequestPiece | undefined): string | undefined =>
    piece?.part === named.part ? excerpt(piece.text, common) : undefined
  const first = { part: named.part, index: named.index, before: from(left), after: from(right) }
  const sharedBytes = Buffer.byteLength(before.slice(0, common))
  return { first, sharedBytes, isEnd: left === undefined || right === undefined }
}

function isSame(a: RequestPiece | undefined, b: RequestPiece | undefined): boolean {
  return a?.part === b?.part && a?.text === b?.text
}

/** Never ends inside a character. */
function commonLength(a: string, b: string): number {
  let at = 0
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  const last = a.charCodeAt(at - 1)
  return last >= 0xd800 && last <= 0xdbff ? at - 1 : at
}

const order: readonly RequestPart[] = ['route', 'config', 'tools', 'system', 'messages']

function rank({ part }: RequestPiece): number {
  return order.indexOf(part)
}

const lead = 30

function excerpt(text: string, at: number): string {
  const from = Math.max(0, at - lead)
  const isInside = from > 0 && text.charCodeAt(from) >= 0xdc00 && text.charCodeAt(from) <= 0xdfff
  return (from === 0 ? '' : '…') + text.slice(isInside ? from + 1 : from)
}

function breakOf(
  { part, index }: FirstDifference,
  {
    before,
    after,
    session,
  }: { before: RebuiltRequest; after: RebuiltRequest; session: Pick<SessionView, 'at'> },
): CacheBreak {
  const routeOf = ({ header: { config } }: RebuiltRequest): string => `${config.provider}/${config.model}`
  const effortOf = ({ header: { config } }: RebuiltRequest): string => config.reasoningEffort ?? 'none'
  switch (part) {
    case 'route':
      return { kind: 'route', before: routeOf(before), after: routeOf(after) }
    case 'config':
      return { kind: 'config', before: effortOf(before), after: effortOf(after) }
    case 'tools':
      return { kind: 'tools', ...toolChanges(before.header, after.header) }
    case 'system':
      return { kind: 'system' }
    case 'messages':
      return { kind: 'history', index, ...replacement(index, [after, before], session) }
  }
}

function toolChanges(
  before: EpochHeader,
  after: EpochHeader,
): Omit<Extract<CacheBreak, { kind: 'tools' }>, 'kind'> {
  const textsOf = ({ tools = [] }: EpochHeader): Map<string, string> =>
    new Map(tools.map(tool => [tool.name, JSON.stringify(tool)]))
  const [old, now] = [textsOf(before), textsOf(after)]
  const added = [...now.keys()].filter(name => !old.has(name))
  const removed = [...old.keys()].filter(name => !now.has(name))
  const changed = [...now].filter(([name, text]) => old.has(name) && old.get(name) !== text)
  const reordered = added.length + removed.length + changed.length === 0
  return { added, removed, changed: changed.map(([name]) => name), reordered }
}

/** The later of the two histories has an event there that stands for what it replaced. */
function replacement(
  index: number,
  histories: readonly RebuiltRequest[],
  session: Pick<SessionView, 'at'>,
): { readonly replacedBy?: NonNullable<Extract<CacheBreak, { kind: 'history' }>['replacedBy']> } {
  for (const { seqs } of histories) {
    const event = session.at(seqs[index] ?? -1)
    const op = event?.surfaceOp
    if (event === undefined || op === undefined || op === 'append') continue
    return { replacedBy: { seq: event.seq, type: event.type, start: op.start, end: op.end } }
  }
  return {}
}

/** Fields that say how the answer is made, not what is read. */
export function harmlessChanges(before: EpochHeader, after: EpochHeader): readonly string[] {
  return (['maxTokens', 'temperature', 'stop'] as const).flatMap(field => {
    const [old, now] = [before.config[field], after.config[field]].map(
      value => JSON.stringify(value) ?? 'unset',
    )
    return old === now ? [] : [`${field} ${old} → ${now}`]
  })
}
