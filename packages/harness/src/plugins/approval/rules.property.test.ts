import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseShell } from '../shell-command/index.ts'
import type { Deed } from './deed.ts'
import type { CommandRule } from './events.ts'
import { judgeDeed } from './judge-deed.ts'
import type { StoredRule } from './rules-in-force.ts'
import type { Circumstances, Verdict } from './verdict.ts'

const programs = ['git', 'npm', 'make', 'deploy']
const deeds = ['push', 'status', 'run', 'all']
const options = { numRuns: 200 }

/** A simple command without anything that a shell would change. */
const simple = fc
  .tuple(fc.constantFrom(...programs), fc.array(fc.constantFrom(...deeds, '-v', '--force'), { maxLength: 3 }))
  .map(([program, words]) => [program, ...words])
const rule: fc.Arbitrary<CommandRule> = fc
  .record({
    effect: fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const),
    prefix: fc
      .tuple(fc.constantFrom(...programs), fc.array(fc.constantFrom(...deeds), { maxLength: 1 }))
      .map(([program, words]) => [program, ...words]),
    access: fc.constantFrom(undefined, 'network' as const, 'full-access' as const),
  })
  .map(({ effect, prefix, access }) => ({
    effect,
    kind: 'command',
    prefix,
    ...(effect === 'allow' && access !== undefined && { access }),
  }))
const rules = fc.array(rule, { maxLength: 6 })
const joins = fc.constantFrom(' && ', '; ', ' | ', ' || ', '\n')

async function judge(
  command: string,
  given: readonly CommandRule[],
  wants = 'network' as const,
): Promise<Verdict> {
  const stored: StoredRule[] = given.map((each, index) => ({ id: `r${index}`, rule: each }))
  const circumstances: Circumstances = {
    mode: 'workspace-write',
    sandbox: { isReady: true, runner: 'test', enforcement: 'full' },
    rules: stored,
    workspace: '/w',
    namedHosts: new Set(),
    mayReachSecrets: () => false,
    isProtected: () => false,
    isOwn: () => false,
  }
  const deed: Deed = {
    kind: 'command',
    command,
    program: await parseShell(command),
    folder: '/w',
    wants: { access: wants, justification: 'x' },
  }
  return judgeDeed(deed, circumstances)
}

/** Words of the command after its program, options left out, begin with those of the rule. */
function speaksOf({ prefix }: CommandRule, [program, ...words]: readonly string[]): boolean {
  const plain = words.filter(word => !word.startsWith('-'))
  return program === prefix[0] && prefix.slice(1).every((word, index) => plain[index] === word)
}

function beginsWith({ prefix }: CommandRule, words: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word)
}

test('rules decide as a reader of them would: deny, then ask, then every part allowed with enough access', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(simple, { minLength: 1, maxLength: 4 }),
      rules,
      joins,
      async (parts, given, join) => {
        const { decision } = await judge(parts.map(part => part.join(' ')).join(join), given)
        const speaks = (effect: 'ask' | 'deny'): boolean =>
          given.some(each => each.effect === effect && parts.some(part => speaksOf(each, part)))
        const isAllowed = (part: readonly string[]): boolean =>
          given.some(each => each.effect === 'allow' && each.access !== undefined && beginsWith(each, part))
        const expected = speaks('deny') ? 'deny' : speaks('ask') || !parts.every(isAllowed) ? 'ask' : 'allow'
        // An option may take the word behind it, which the rule then does not speak of: a reader cannot know.
        if (decision !== expected)
          assert.ok(decision === 'ask' || decision === 'deny', `${decision}, not ${expected}`)
        const hasOptions = parts.some(part => part.some(word => word.startsWith('-')))
        if (!hasOptions) assert.equal(decision, expected)
      },
    ),
    options,
  )
})

test('no rules ever make a command quiet that has a part which none allows, wherever the part stands', async () => {
  const places = [
    (quiet: string, other: string) => `${quiet} && ${other}`,
    (quiet: string, other: string) => `${other} | ${quiet}`,
    (quiet: string, other: string) => `${quiet} "$(${other})"`,
    (quiet: string, other: string) => `${quiet} <(${other})`,
    (quiet: string, other: string) => `if ${quiet}; then ${other}; fi`,
    (quiet: string, other: string) => `f() { ${other}; }; ${quiet}`,
    (quiet: string, other: string) => `(${quiet}; ${other}) &`,
    (quiet: string, other: string) => `${quiet}; eval '${other}'`,
    (quiet: string, other: string) => `bash -c '${quiet}; ${other}'`,
    (quiet: string, other: string) => `${quiet} > out; timeout 5 ${other}`,
    (quiet: string, other: string) => `X=\`${other}\`; ${quiet}`,
  ]
  await fc.assert(
    fc.asyncProperty(
      simple,
      simple,
      fc.constantFrom(...places),
      rules,
      async (quiet, other, place, given) => {
        const allowing = given.map(({ prefix }): CommandRule => ({
          effect: 'allow',
          kind: 'command',
          prefix,
          access: 'full-access',
        }))
        const enough: CommandRule = { effect: 'allow', kind: 'command', prefix: quiet, access: 'full-access' }
        const all = [...allowing, enough]
        fc.pre(!all.some(each => beginsWith(each, other)))
        const { decision } = await judge(place(quiet.join(' '), other.join(' ')), all)
        assert.equal(decision, 'ask')
      },
    ),
    options,
  )
})

test('a rule that denies one part denies the whole, whatever else is allowed', async () => {
  await fc.assert(
    fc.asyncProperty(simple, simple, rules, joins, async (one, denied, given, join) => {
      const deny: CommandRule = { effect: 'deny', kind: 'command', prefix: denied.slice(0, 1) }
      for (const order of [
        [...given, deny],
        [deny, ...given],
      ]) {
        const { decision } = await judge(`${one.join(' ')}${join}${denied.join(' ')}`, order)
        assert.equal(decision, 'deny')
      }
    }),
    options,
  )
})
