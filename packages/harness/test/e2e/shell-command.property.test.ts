import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { commandsOf, isReadOnly, parseShell } from '@dsh/harness/plugins/shell-command'

const plain = fc.stringMatching(/^[a-z0-9._/+,%^-]{1,6}$/)
const inner = fc.stringMatching(/^[a-z \t|;&<>(){}#*?!~=-]{0,8}$/)
/** Parts of a word, each as one may write it; what stands next to it never changes it. */
const piece = fc.oneof(
  plain,
  inner.map(text => `'${text}'`),
  inner.map(text => `"${text.replaceAll('!', '')}"`),
  fc.constantFrom(
    `"\\$\\"\\\\\\a"`,
    `$'\\x41\\n\\''`,
    `$'\\101\\u00e9'`,
    String.raw`\;`,
    String.raw`\ `,
    '\\\n',
    '""',
    "''",
    '$"hi"',
    '\\#',
    '"`"'.replace('`', '\\`'),
  ),
)
const unknown = fc.constantFrom(
  '$none',
  '"$set"',
  '${set}',
  '*',
  'a*',
  '~',
  '{a,b}',
  '$(printf x)',
  '"$(printf x)y"',
  '$((1+1))',
)
const word = fc.oneof(
  { weight: 5, arbitrary: fc.array(piece, { minLength: 1, maxLength: 4 }).map(pieces => pieces.join('')) },
  { weight: 1, arbitrary: fc.tuple(plain, unknown).map(pieces => pieces.join('')) },
  { weight: 1, arbitrary: unknown },
)

/** What bash makes of each line of words. */
function wordsOfBash(lines: readonly string[]): readonly (readonly string[])[] {
  const script = lines.map(line => `p ${line}\n`).join('')
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', `p() { printf '%s\\0' "$#" "$@"; }\nset="a b"\n${script}`],
    {
      encoding: 'utf8',
      timeout: 20_000,
      killSignal: 'SIGKILL',
      cwd: '/',
      env: { PATH: process.env['PATH'], HOME: '/root', LC_ALL: 'C.UTF-8' },
    },
  )
  const rest = stdout.split('\0')
  const found = lines.map(() => rest.splice(0, Number(rest.shift())))
  assert.deepEqual(rest, [''], stderr)
  return found
}

test('words are what bash makes of them, as far as they are known', async () => {
  const lines = fc
    .sample(fc.array(word, { minLength: 1, maxLength: 5 }), { numRuns: 1500, seed: 7 })
    .map(words => words.join(' '))
  const real = wordsOfBash(lines)
  let compared = 0
  for (const [index, line] of lines.entries()) {
    const program = await parseShell(`p ${line}`)
    assert.ok(program, line)
    const [command] = commandsOf(program)
    const words = command?.words.slice(1) ?? []
    const end = words.indexOf(undefined)
    const known = end < 0 ? words : words.slice(0, end)
    assert.deepEqual(end < 0 ? real[index] : real[index]?.slice(0, end), known, JSON.stringify(line))
    const stem = end < 0 ? '' : (command?.stems[end + 1] ?? '')
    assert.ok(stem === '' || real[index]?.[end]?.startsWith(stem), JSON.stringify(line))
    compared += known.length
  }
  assert.ok(compared > 2000, `${compared} words`)
})

const soup = fc.array(
  fc.constantFrom(
    'ls',
    'echo',
    'cat',
    'boom',
    'boom',
    'boom',
    'x',
    ' ',
    ' ',
    ' ',
    ' ',
    ';',
    '\n',
    '&',
    '&&',
    '||',
    '|',
    '(',
    ')',
    '{',
    '}',
    '$(',
    '`',
    '"',
    "'",
    '#',
    '\\',
    '$',
    "$'",
    '<',
    '>',
    '<<E',
    '\nE\n',
    '<<<',
    '<(',
    '$((',
    '))',
    '((',
    '[[',
    ']]',
    '${',
    'if ',
    'then ',
    'fi',
    'for x in ',
    'do ',
    'done',
    'case x in ',
    'esac',
    ';;',
    '!',
    'eval ',
    'bash -c ',
    'env ',
    'xargs ',
    'command ',
    'x=',
    '*',
    '~',
    '=',
    '\t',
    '\r',
    '{a,',
    'time ',
    'f() ',
  ),
  { minLength: 2, maxLength: 14 },
)

test('what is taken for reading runs nothing else, however broken it is', async t => {
  const root = mkdtempSync(join(tmpdir(), 'soup-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const [bin, cwd, mark] = [join(root, 'bin'), join(root, 'cwd'), join(root, 'boomed')]
  for (const folder of [bin, cwd]) mkdirSync(folder)
  for (const name of ['boom', 'ls', 'cat', 'x']) {
    writeFileSync(join(bin, name), name === 'boom' ? `#!/bin/sh\n: > '${mark}'\n` : '#!/bin/sh\nexit 0\n')
    chmodSync(join(bin, name), 0o755)
  }
  const texts = fc.sample(soup, { numRuns: 60_000, seed: 11 }).map(pieces => pieces.join(''))
  let quiet = 0
  for (const text of texts) {
    if (!text.includes('boom') || !isReadOnly(await parseShell(text), { cwd })) continue
    quiet++
    if (quiet > 250) break
    spawnSync('/bin/bash', ['-c', text], {
      cwd,
      env: { PATH: bin },
      timeout: 5000,
      killSignal: 'SIGKILL',
      stdio: 'ignore',
    })
    assert.ok(!existsSync(mark), JSON.stringify(text))
  }
  assert.ok(quiet > 100, `${quiet} texts were quiet`)
})
