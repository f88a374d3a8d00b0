import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments, pickAction, unknownCommand } from './arguments.ts'
import { commands } from './commands.ts'
import { groupUsage, overview, usage } from './help.ts'
import type { Command, CommandGroup } from './command.ts'
import { errorLines, reportOf } from './report-error.ts'

const run = commandOf('run')

function commandOf(name: string) {
  const command = commands.find(one => one.name === name)
  assert(command && 'load' in command)
  return command
}

const groups = commands.flatMap((one): CommandGroup[] => ('actions' in one ? [one] : []))
const all = commands.flatMap((one): readonly Command[] => ('actions' in one ? one.actions : [one]))

function refusal(argv: readonly string[]): string {
  try {
    parseArguments(run, argv)
  } catch (error) {
    const report = reportOf(error)
    assert.equal(report.exitCode, 2)
    return errorLines(report)
  }
  throw new Error(`accepted: ${argv.join(' ')}`)
}

test('short and long options, values after = and words in any order are understood', () => {
  const argv = ['fix', '-m', 'a/b/c', '--permission=read-only', '-C/tmp', '--json', 'it', '-c']
  assert.deepEqual(parseArguments(run, argv), {
    values: { model: 'a/b/c', permission: 'read-only', directory: '/tmp', json: true, continue: true },
    words: ['fix', 'it'],
  })
})

test('what follows the first word of a command that takes another one is that one', () => {
  const why = all.find(({ name }) => name === 'permission why')
  assert.ok(why)
  assert.deepEqual(parseArguments(why, ['--json', 'ls', '-l', '--json', '--', 'x']), {
    values: { json: true },
    words: ['ls', '-l', '--json', '--', 'x'],
  })
  assert.deepEqual(parseArguments(why, ['--', 'ls', '-l']).words, ['ls', '-l'])
  assert.deepEqual(parseArguments(why, ['--tool', 'write', 'a']).values, { tool: 'write' })
})

test('a single dash is a word, and everything after -- is', () => {
  assert.deepEqual(parseArguments(run, ['-']).words, ['-'])
  assert.deepEqual(parseArguments(run, ['--', '--json', '-x']), { values: {}, words: ['--json', '-x'] })
})

test('an unknown option is refused with the nearest one', () => {
  assert.equal(
    refusal(['--jsn', 'x']),
    'error UNKNOWN_OPTION: dsh run has no option --jsn; did you mean "--json"?\n  dsh run --help\n',
  )
  assert.equal(refusal(['-x']), 'error UNKNOWN_OPTION: dsh run has no option -x\n  dsh run --help\n')
  assert.match(refusal(['--constructor']), /^error UNKNOWN_OPTION: dsh run has no option --constructor\n/)
})

test('an option with a value it does not take, without one it needs, or given twice is refused', () => {
  assert.equal(
    refusal(['--yes=no']),
    'error UNEXPECTED_VALUE: --yes takes no value, found "no"\n  dsh run --help\n',
  )
  assert.equal(refusal(['x', '-m']), 'error MISSING_VALUE: -m needs a value\n  dsh run --help\n')
  assert.equal(refusal(['--schema=']), 'error MISSING_VALUE: --schema needs a value\n  dsh run --help\n')
  assert.equal(
    refusal(['-m', 'a/b', '--model', 'c/d']),
    'error REPEATED_OPTION: --model is given twice\n  dsh run --help\n',
  )
})

test('an option does not swallow the option that follows it', () => {
  assert.equal(refusal(['-m', '--json']), 'error MISSING_VALUE: -m needs a value\n  dsh run --help\n')
})

test('an unknown command is refused with the nearest one', () => {
  assert.equal(
    errorLines(reportOf(unknownCommand('sesion', commands))),
    'error UNKNOWN_COMMAND: dsh has no command "sesion"; did you mean "session"?\n  dsh --help\n',
  )
  assert.equal(
    errorLines(reportOf(unknownCommand('--frob', commands))),
    'error UNKNOWN_OPTION: dsh has no option "--frob"\n  dsh --help\n',
  )
})

test('a task without a command is told which one takes it', () => {
  assert.equal(
    errorLines(reportOf(unknownCommand('what is in this folder?', commands))),
    'error UNKNOWN_COMMAND: dsh has no command "what is in this folder?"\n  dsh run "what to do"\n  dsh --help\n',
  )
})

test('an unknown action of a group is refused with the nearest one', () => {
  const [session] = groups
  assert(session)
  assert.throws(() => pickAction(session, ['lst']), {
    code: 'UNKNOWN_ACTION',
    message: /found "lst"; did you mean "ls"\?$/,
  })
  assert.throws(() => pickAction(session, []), { message: /^dsh session does ls, .* or .*; found nothing$/ })
  assert.deepEqual(pickAction(session, ['show', 'a']).rest, ['a'])
})

test('a word that a command needs or does not take is refused', () => {
  const command: Command = { ...run, words: ['ID', '[SEQ]'] }
  const cases: [string[], string | undefined][] = [
    [[], 'MISSING_WORD'],
    [['a'], undefined],
    [['a', '1'], undefined],
    [['a', '1', 'x'], 'UNEXPECTED_WORD'],
    [['--help'], undefined],
  ]
  for (const [words, code] of cases) {
    if (code === undefined) assert.doesNotThrow(() => parseArguments(command, words))
    else assert.throws(() => parseArguments(command, words), { code })
  }
})

test('the help names every command and every option', () => {
  const helps = [overview(commands), ...groups.map(groupUsage), ...all.map(usage)].join('\n')
  for (const { name, options } of all)
    for (const word of [`dsh ${name}`, ...Object.keys(options).map(option => `--${option}`)])
      assert.ok(helps.includes(word), word)
})
