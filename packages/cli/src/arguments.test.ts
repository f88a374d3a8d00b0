import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments, unknownCommand } from './arguments.ts'
import { commands } from './commands.ts'
import { overview, usage } from './help.ts'
import { errorLines, reportOf } from './report-error.ts'

const run = commandOf('run')

function commandOf(name: string) {
  const command = commands.find(one => one.name === name)
  assert(command)
  return command
}

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

test('the help names every command and every option', () => {
  const helps = [overview(commands), ...commands.map(usage)].join('\n')
  for (const { name, options } of commands)
    for (const word of [`dsh ${name}`, ...Object.keys(options).map(option => `--${option}`)])
      assert.ok(helps.includes(word), word)
})
