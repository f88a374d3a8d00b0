import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Session } from '@dsh/harness/session'
import { openPlace, seqOf, treeOf } from './rewind-place.ts'

/** One change of a file, by whoever. A change that the state of the files does not allow is left out. */
interface Change {
  readonly kind: 'write' | 'delete' | 'rename' | 'mode' | 'link' | 'folder' | 'clear'
  readonly path: string
  readonly other: string
}

const names = ['a', 'b', 'd/a', 'd/b', 'd/e/c', 'x y', 'ü\n"q', 'd', 'log.tmp', 'build/o']
const path = fc.constantFrom(...names)
const agentChange: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('write', 'write', 'write', 'delete', 'rename', 'mode', 'link', 'folder', 'clear'),
  path,
  other: path,
})
/** Files of names that the agent uses too, so that both change the same. */
const userChange: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('write', 'write', 'delete', 'mode'),
  path: fc.constantFrom('a', 'b', 'd/a', 'mine'),
  other: path,
})
const userChanges = fc.array(userChange, { maxLength: 2 })
const step = fc.record({
  asked: userChanges,
  answering: userChanges,
  changes: fc.array(agentChange, { maxLength: 4 }),
})
const turn = fc.record({
  before: userChanges,
  steps: fc.array(step, { minLength: 1, maxLength: 3 }),
})

let contents = 0

function make(at: (path: string) => string, { kind, path: name, other }: Change, who = ''): void {
  try {
    const target = at(name)
    if (kind === 'delete' || kind === 'clear') rmSync(target, { recursive: kind === 'clear' })
    if (kind === 'mode') chmodSync(target, contents++ % 2 === 0 ? 0o755 : 0o600)
    if (kind === 'rename') renameSync(target, at(other))
    if (kind === 'folder') mkdirSync(target, { recursive: true })
    if (kind !== 'write' && kind !== 'link') return
    mkdirSync(dirname(target), { recursive: true })
    if (kind === 'link') symlinkSync(other, target)
    // Bytes that are no text, and line ends of two kinds.
    else writeFileSync(target, Buffer.from(`${who}${contents++}\r\n\xff\0\n`, 'latin1'))
  } catch (error) {
    assert.match(String((error as NodeJS.ErrnoException).code), /^E/)
  }
}

function without(tree: Record<string, string>, kept: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tree).filter(([name, what]) => what !== 'folder' && !kept.has(name)),
  )
}

type Tree = Readonly<Record<string, string>>

/** What is of the user, and not as it was, is as it is. An empty folder may have come since. */
function assertKept(
  users: ReadonlySet<string>,
  { target, now, after }: { readonly target: Tree; readonly now: Tree; readonly after: Tree },
): void {
  for (const each of users)
    if (now[each] !== 'folder' && target[each] !== now[each]) assert.equal(after[each], now[each], each)
}

/** The prompt of each turn, and the call of each further step. */
function rowsOf(session: Session, turns: readonly { readonly steps: readonly unknown[] }[]): number[] {
  return turns.flatMap(({ steps }, turnIndex) => {
    const calls = turns.slice(0, turnIndex).reduce((sum, each) => sum + each.steps.length, 0)
    return steps.map((_, index) =>
      index === 0 ? seqOf(session, 'user/message', turnIndex) : seqOf(session, 'tool/call', calls + index),
    )
  })
}

const raw = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

test('going back to any point gives the very files of then, but for what the user changed; an undo, those of before', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(turn, { minLength: 1, maxLength: 3 }),
      userChanges,
      fc.nat(),
      async (turns, last, pick) => {
        const ends: (() => Promise<void>)[] = []
        const place = await openPlace({ after: end => void ends.push(end) })
        try {
          const { ctx, agent, at, workspace } = place
          writeFileSync(at('.gitignore'), '*.tmp\n/build/\n')
          /** The files at each point that can be gone back to, by its row. */
          const states: Record<string, string>[] = []
          const touched: { readonly path: string; readonly state: number }[] = []
          /** What is back as it was counts as not touched; a write may follow a link to another name. */
          const byUser = (changes: readonly Change[]): void => {
            const before = treeOf(workspace)
            // Clocks tick in steps: what is as long, and written in the same one, looks the same.
            for (const change of changes) make(at, change, 'by the user ')
            const after = treeOf(workspace)
            for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
              if (after[name] !== before[name]) touched.push({ path: name, state: states.length })
          }
          for (const { before, steps } of turns) {
            byUser(before)
            states.push(treeOf(workspace))
            await place.turnAmid(
              {
                asked: index => byUser(steps[index]?.asked ?? []),
                answering: index => byUser(steps[index]?.answering ?? []),
              },
              ...steps.map(({ changes }, index) => () => {
                for (const change of changes) make(at, change)
                if (index < steps.length - 1) states.push(treeOf(workspace))
              }),
            )
          }
          byUser(last)
          const { session } = agent
          const seqs = rowsOf(session, turns)
          const chosen = pick % states.length
          const [target = {}, now] = [states[chosen], treeOf(workspace)]
          const result = await ctx.rewind.apply(session, seqs[chosen] ?? -1, { scope: 'files' })
          const after = treeOf(workspace)
          const kept = new Set(result.kept.map(each => raw(each.path)))
          const users = new Set(touched.filter(({ state }) => state > chosen).map(each => each.path))
          const ignored = Object.keys(now).filter(name => /^build\/|\.tmp(\/|$)/.test(name))
          assertKept(users, { target, now, after })
          for (const { path: each, reason } of result.kept) {
            const why = `${each}: ${reason}`
            assert.equal(after[raw(each)], now[raw(each)], why)
            const blocked = [...users].some(
              name => name.startsWith(`${raw(each)}/`) || raw(each).startsWith(`${name}/`),
            )
            assert.ok(users.has(raw(each)) || blocked || reason === 'not-in-point', why)
          }
          const left = new Set([
            ...kept,
            ...ignored,
            ...Object.keys(target).filter(name => /^build\/|\.tmp(\/|$)/.test(name)),
          ])
          assert.deepEqual(without(after, left), without(target, left))
          const isPlain = !('build' in now || 'log.tmp' in now) && users.size === 0 && left.size === 0
          if (isPlain) assert.deepEqual(after, target)
          // One that found nothing to do is no rewind.
          if (session.last('rewind/applied') !== undefined) await ctx.rewind.apply(session, 'undo')
          assert.deepEqual(without(treeOf(workspace), new Set()), without(now, new Set()))
        } finally {
          for (const end of ends.toReversed()) await end()
        }
      },
    ),
    { numRuns: 30, seed: 751208456 },
  )
})
