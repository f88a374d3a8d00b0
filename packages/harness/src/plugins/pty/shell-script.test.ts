import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keyBytes } from './keys.ts'
import { runLine, setUpLine } from './shell-script.ts'

const by = { number: 3, nonce: 'n' }

test('what is typed into a shell is this', () => {
  assert.equal(
    setUpLine('bash', 'n'),
    String.raw`dsh_status=$?; dsh_prompt() { PS1=$'\e]133;D;$?;n\adsh> ' PS0=$'\e]133;C;n\a' PS2=; }; PROMPT_COMMAND=dsh_prompt; HISTFILE=; set +H +o history; (exit $dsh_status)`,
  )
  assert.equal(
    setUpLine('sh', 'n'),
    String.raw`dsh_status=$?; PS1=$(printf '\033]133;D;')'$?'$(printf ';n\007dsh> ') PS2=; (exit $dsh_status)`,
  )
  assert.equal(
    runLine('bash', "echo 'a\\b'\n\té", by),
    String.raw`printf '\033]133;R;3;n\007'; eval -- $'echo \'a\\b\'\x0a\x09é'`,
  )
  assert.equal(
    runLine('sh', "echo 'a\\b'\n\té", by),
    String.raw`printf '\033]133;R;3;n\007'; eval "$(printf %b 'echo '\''a\\b'\''\0012\0011é')"`,
  )
})

test('no line of a command is longer than a terminal takes, and none holds what a terminal obeys', () => {
  const command = fc.array(fc.constantFrom('x', 'é', '🐳', '表', "'", '\\', '\n', '\x03', '\x7f', '!'), {
    minLength: 1000,
    maxLength: 6000,
  })
  fc.assert(
    fc.property(command, fc.constantFrom('bash' as const, 'sh' as const), (chars, dialect) => {
      for (const line of runLine(dialect, chars.join(''), by).split('\n')) {
        assert.ok(Buffer.byteLength(line) < 4095)
        assert.doesNotMatch(line, new RegExp(String.raw`[\0-\x1f\x7f]`))
      }
    }),
    { numRuns: 30 },
  )
})

test('keys are named as people name them, and what is none is refused', () => {
  const keys = ['Enter', '<C-c>', 'Ctrl-d', 'C-[', 'tab', '<Up>', 'M-x', 'C-?', 'PageDown', 'C-_']
  assert.deepEqual(keys.map(keyBytes), [
    '\r',
    '\x03',
    '\x04',
    '\x1b',
    '\t',
    '\x1b[A',
    '\x1bx',
    '\x7f',
    '\x1b[6~',
    '\x1f',
  ])
  for (const none of ['', 'C-', 'ctrl+c', 'Return!', '<>', 'é'])
    assert.throws(() => keyBytes(none), {
      message: `invalid arguments: keys: there is no key "${none}"; use Enter, Tab, Escape, Up, C-c and the like`,
    })
})
