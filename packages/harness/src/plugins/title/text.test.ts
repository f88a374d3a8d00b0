import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasText, titleOf } from './text.ts'

const shown = (text: string, maxBytes = 40, maxWords = 5): string => titleOf(text, { maxBytes, maxWords })

test('a title is the first words on one line', () => {
  assert.equal(shown('Fix the login test, please, and run it'), 'Fix the login test, please,')
  assert.equal(shown('  Fix\n\n\tthe   test  '), 'Fix the test')
})

test('a title that is too long ends with a word', () => {
  assert.equal(
    shown('Implement internationalization configuration for dates'),
    'Implement internationalization',
  )
  assert.equal(
    shown('Pneumonoultramicroscopicsilicovolcanoconiosis'),
    'Pneumonoultramicroscopicsilicovolcanocon',
  )
})

test('a title in a language without spaces ends with a clause, or else with a character', () => {
  assert.equal(shown('修复登录页面的错误，然后运行所有的测试'), '修复登录页面的错误')
  assert.equal(shown('修复登录页面的错误然后运行所有的测试'), '修复登录页面的错误然后运行')
  assert.equal(shown('一、二、三、四、五、六、七'), '一、二、三、四、五')
})

test('no character is cut in two, and none that is cut off leaves a joint', () => {
  assert.equal(shown('😀😀😀', 9), '😀😀')
  assert.equal(shown('ab\ud83d', 40), 'ab\ufffd')
  assert.equal(shown('👩‍💻x', 8), '👩')
})

test('nothing is left where not even one character fits', () => {
  assert.equal(shown('漢字', 2), '')
})

test('what acts on a terminal, or turns a line around, is no part of a title', () => {
  assert.equal(shown('\u001b[31mred\u001b[0m \u001b]0;window\u0007text'), 'red text')
  assert.equal(shown('\u009b1mbold\u0007 \u001b]0;never ended'), 'bold 0;never ended')
  assert.equal(shown('a\u202eb\u2066c\u200b\ufeffd'), 'abcd')
  assert.equal(shown('a\u0000b\u001bcd'), 'abd')
})

test('what shows nothing has no text', () => {
  assert.deepEqual(['', ' \n\t', '\u001b[0m', '\u200b\u202e', 'x'].map(hasText), [
    false,
    false,
    false,
    false,
    true,
  ])
})
