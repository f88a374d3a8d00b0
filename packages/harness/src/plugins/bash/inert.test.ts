import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { inertText, InertStream, withoutOpenSequence } from './inert.ts'

test('plain text of any script stays as it is', () => {
  const text = 'a\tb\n溝 🐳 é \u2028 \ufffd ÿ'
  assert.equal(inertText(text), text)
})

test('terminal sequences are gone, whatever they would do', () => {
  const cases = {
    '\x1b[31mred\x1b[0m': 'red',
    '\x1b]0;title\x07x': 'x',
    '\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\': 'link',
    '\x1b[2J\x1b[?1049hx': 'x',
    '\x1bP1$r0m\x1b\\x': 'x',
    '\x1b(B\x1b7\x1b=x\x1bc': 'x',
    '\x9b31mx\x9d0;t\x9cy': 'xy',
    '\x1b]0;never ends\nnext': '\nnext',
  }
  for (const [text, expected] of Object.entries(cases)) assert.equal(inertText(text), expected)
})

test('what no sequence comes of is shown as a sign', () => {
  assert.equal(inertText('a\0b\x07c\x7fd\x1b'), 'a␀b␇c␡d␛')
  assert.equal(inertText('\x80\x85'), '\\x80\\x85')
  assert.equal(inertText(`a${'\0'.repeat(15)}b${'\0'.repeat(16)}c`), `a${'␀'.repeat(15)}b␀[×16]c`)
})

test('a line that was drawn anew stands as it was drawn last', () => {
  assert.equal(inertText('10%\r50%\r100%\ndone\n'), '100%\ndone\n')
  assert.equal(inertText('10%\r100%\r\r\r\nx'), '100%\nx')
  assert.equal(inertText('a\r\nb\r\n'), 'a\nb\n')
  assert.equal(inertText('\r\r'), '')
  assert.equal(inertText('\x1b[1G\x1b[2K1/2\r\x1b[2K2/2\n'), '2/2\n')
  assert.equal(inertText('N\bNA\bAabc\b\b'), 'NAa')
  assert.equal(inertText('\b\bx'), 'x')
})

test('nothing that a terminal obeys is left, whatever comes', () => {
  const char = fc.constantFrom(
    '\x1b',
    '[',
    ']',
    '3',
    'm',
    ';',
    '\\',
    '\x07',
    '\x9b',
    '\r',
    '\b',
    'P',
    'x',
    '\n',
    '\0',
  )
  fc.assert(
    fc.property(fc.array(char, { maxLength: 20 }), chars => {
      const text = inertText(chars.join(''))
      assert.ok(
        text
          .split('')
          .every(
            each =>
              each === '\n' ||
              (each.charCodeAt(0) >= 0x20 && each.charCodeAt(0) < 0x7f) ||
              each.charCodeAt(0) > 0x9f,
          ),
        JSON.stringify(text),
      )
    }),
  )
})

test('a stream gives the same as the whole, however it is torn, but that lines are still drawn anew', () => {
  const char = fc.constantFrom('\x1b[31m', '\x1b]0;t\x07', '\x1b]8;;u\x1b\\', '\x1b(B', 'ab', '\n', '\0')
  fc.assert(
    fc.property(fc.array(char, { maxLength: 8 }), fc.nat(7), (parts, size) => {
      const whole = parts.join('')
      const stream = new InertStream()
      let text = ''
      for (let at = 0; at < whole.length; at += size + 1) text += stream.push(whole.slice(at, at + size + 1))
      assert.equal(text + stream.end(), inertText(whole))
    }),
  )
  const stream = new InertStream()
  assert.equal(stream.push('a\rb\x1b'), 'a\rb')
  assert.equal(stream.push('[0m'), '')
  assert.equal(stream.push('\x1b['), '')
  assert.equal(stream.end(), '')
  assert.equal(stream.push('\x1b') + stream.end(), '␛')
})

test('a sequence that never ends does not hold back what follows for ever', () => {
  const stream = new InertStream()
  let shown = stream.push('\x1bP')
  for (let count = 0; count < 100; count++) shown += stream.push('x'.repeat(100))
  assert.ok(shown.length > 4000)
})

test('the beginning of a sequence at a cut is left out', () => {
  assert.equal(withoutOpenSequence('a\x1b[3'), 'a')
  assert.equal(withoutOpenSequence('a\x1b[3m'), 'a\x1b[3m')
  assert.equal(withoutOpenSequence('plain'), 'plain')
})

/**
 * Ends `job` when it takes minutes, which it does where the work grows with the square of the text: that is a million
 * times a million steps here, and the test that fails to end would tell nobody why.
 */
function endsSoon(job: () => void): void {
  runInNewContext('job()', { job }, { timeout: 120_000 })
}

test('megabytes of progress and of noise are made inert in one go', () => {
  const bar = Array.from(
    { length: 100_000 },
    (_, index) => `\x1b[2K\x1b[32m${'='.repeat(30)}\x1b[0m ${index}%`,
  ).join('\r')
  const noise = 'x'.repeat(1 << 20) + '\x1b'.repeat(1 << 20)
  endsSoon(() => {
    assert.equal(inertText(bar), `${'='.repeat(30)} 99999%`)
    assert.ok(inertText(noise).length > 0)
    assert.ok(inertText(`${'\r'.repeat(1 << 20)}x\n${'\x9d'.repeat(1 << 20)}`).length > 0)
    for (const start of ['\x90', '\x98', '\x1bP', '\x1b[', '\x1b]', '\x9b'])
      assert.ok(inertText(start.repeat(1 << 20)).length >= 0)
  })
})
