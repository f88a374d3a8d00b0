import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applySplices, planEdit } from './edit.ts'
import type { FsEditRequest } from './service.ts'

function edit(text: string, oldString: string, newString: string, options: Partial<FsEditRequest> = {}) {
  const plan = planEdit(text, { oldString, newString, replaceAll: false, ...options })
  return plan.kind === 'replace'
    ? { match: plan.match, text: applySplices(text, plan.splices), count: plan.splices.length }
    : plan
}

function edited(text: string, oldString: string, newString: string, options: Partial<FsEditRequest> = {}) {
  const result = edit(text, oldString, newString, options)
  return 'text' in result ? result.text : assert.fail(JSON.stringify(result))
}

test('old text that stands there exactly is replaced, and no pattern in the new text is read', () => {
  assert.deepEqual(edit('a b c', 'b', "$& $1 $' {{x}}"), {
    match: 'exact',
    text: "a $& $1 $' {{x}} c",
    count: 1,
  })
})

test('empty new text deletes', () => {
  assert.equal(edited('one\ntwo\nthree\n', 'two\n', ''), 'one\nthree\n')
})

test('two lines given with LF match in a CRLF file and keep its line ends', () => {
  assert.equal(edited('def a():\r\n  x\r\n', 'def a():\n  x', 'def a():\n  y'), 'def a():\r\n  y\r\n')
})

test('only edited lines change in a file of mixed line ends', () => {
  assert.equal(
    edited('a\r\nb\nc\rd\r\ne', 'a\nb\nc\nd', 'a\nB\nc\nD\nD2'),
    'a\r\nB\nc\rD\r\nD2\r\ne',
    'a kept line keeps its end, a replaced one passes its end on, a further one takes the end before it',
  )
})

test('a file of lone CRs is matched by lines and stays one', () => {
  assert.equal(edited('a\rb\rc', 'a\nb', 'a\nx\ny'), 'a\rx\ry\rc')
})

test('inserted lines take the line ends around them, also at the end of a file without final newline', () => {
  assert.equal(edited('a\r\nb', 'b', 'b\nc'), 'a\r\nb\r\nc')
  assert.equal(edited('a\r\nb\r\n', 'a\n', 'a\nx\n'), 'a\r\nx\r\nb\r\n')
})

test('old text that names its CRs is taken byte by byte, so line ends themselves can be edited', () => {
  assert.equal(edited('a\r\nb\r\n', 'a\r\nb\r\n', 'a\nb\n'), 'a\nb\n')
})

test('old text with CRLF matches a file of LF, and CRLF in the new text becomes LF', () => {
  assert.equal(edited('a\nb\n', 'a\r\nb', 'a\r\nc'), 'a\nc\n')
})

test('a final line end that the file does not have is not added by an edit', () => {
  assert.equal(edited('a\nlast', 'last\n', 'end\n'), 'a\nend')
})

test('replace all replaces each occurrence under its own line end', () => {
  assert.equal(edited('a\r\nb\n.a\nb\r', 'a\nb', 'c\nd', { replaceAll: true }), 'c\r\nd\n.c\nd\r')
  assert.equal(edited('aXaXa', 'a', 'aa', { replaceAll: true }), 'aaXaaXaa')
})

test('several hits without replace all are refused with their lines', () => {
  assert.deepEqual(edit('x\ny\nx\nx', 'x', 'z'), { kind: 'ambiguous', match: 'exact', lines: [1, 3, 4] })
})

test('the same text under LF and CRLF is two hits', () => {
  assert.deepEqual(edit('a\nb\n-\na\r\nb\n', 'a\nb', 'c'), {
    kind: 'ambiguous',
    match: 'exact',
    lines: [1, 4],
  })
})

test('blanks at line ends do not hinder, and unchanged lines keep theirs', () => {
  assert.deepEqual(edit('if x:  \n  a\t\n  b \n', 'if x:\n  a\n  b\n', 'if x:\n  a\n  c\n'), {
    match: 'trailing-space',
    text: 'if x:  \n  a\t\n  c\n',
    count: 1,
  })
})

test('blanks at the end of the old text stand for the end of a line, not for nothing', () => {
  assert.deepEqual(edit('foobar\nbaz foo\n', 'foo  ', 'new'), {
    match: 'trailing-space',
    text: 'foobar\nbaz new\n',
    count: 1,
  })
})

test('plain quotes, dashes and spaces match typographic ones', () => {
  assert.deepEqual(edit('say(“hi”) – it’s\u00a0ok\nnext', 'say("hi") - it\'s ok\nnext', 'say("ho")\nnext'), {
    match: 'punctuation',
    text: 'say("ho")\nnext',
    count: 1,
  })
})

test('another indentation matches whole lines, and new lines are moved to it', () => {
  const file = 'class A {\n    run() {\n      go()\n    }\n}\n'
  const result = edit(file, 'run() {\n  go()\n}\n', 'run() {\n  if (x) {\n    go()\n  }\n}\n')
  assert.deepEqual(result, {
    match: 'indentation',
    text: 'class A {\n    run() {\n      if (x) {\n        go()\n      }\n    }\n}\n',
    count: 1,
  })
})

test('spaces match tabs, also for a depth that the old text does not have', () => {
  assert.equal(
    edited('\tif a:\n\t\tb\n', '  if a:\n    b\n', '  if a:\n    if c:\n      b\n'),
    '\tif a:\n\t\tif c:\n\t\t\tb\n',
  )
})

test('lines whose depths do not correspond are not the same block', () => {
  const plan = edit('  if a:\n  b\n', 'if a:\n    b\n', 'if a:\n    c\n')
  assert.deepEqual(plan, { kind: 'missing', near: [{ line: 1, lines: ['  if a:', '  b'] }] })
})

test('tolerant matching refuses what it finds twice', () => {
  assert.deepEqual(edit(' f( \n  f(\n', 'f( \t\n', 'g(\n'), {
    kind: 'ambiguous',
    match: 'trailing-space',
    lines: [1, 2],
  })
})

test('an exact hit wins over tolerant ones', () => {
  assert.equal(edited('“a”\n"a"\n', '"a"', 'b'), '“a”\nb\n')
})

test('the same edit made twice is recognised', () => {
  const once = edited('const port = 80\n', 'port = 80', 'port = 8080')
  assert.deepEqual(edit(once, 'port = 80', 'port = 8080'), { kind: 'applied', line: 1 })
  const added = edited('a()\nend()\n', 'a()\n', 'a()\nb(1)\n')
  assert.deepEqual(edit(added, 'a()\n', 'a()\nb(1)\n'), { kind: 'applied', line: 1 })
  assert.deepEqual(edit('x\r\nnew text\r\n', 'old text', 'new text'), { kind: 'applied', line: 2 })
})

test('a similar block elsewhere is not edited in place of the one that has its new text already', () => {
  const file = 'f(2222)\n  f(1)\n'
  assert.deepEqual(edit(file, 'f(1)  \n', 'f(2222)\n'), { kind: 'applied', line: 1 })
})

test('text that is not there is answered with the places that come nearest', () => {
  const file = 'import a\n\nfunction alpha(x) {\n  return x + 1\n}\n\nfunction beta(x) {\n  return x + 2\n}\n'
  const plan = edit(file, 'function alpha(x) {\n  return x - 1\n}', 'whatever')
  assert.deepEqual(plan, {
    kind: 'missing',
    near: [{ line: 3, lines: ['function alpha(x) {', '  return x + 1', '}'] }],
  })
  assert.deepEqual(edit(file, 'functoin beta(y)', 'z'), {
    kind: 'missing',
    near: [{ line: 7, lines: ['function beta(x) {'] }],
  })
  assert.deepEqual(edit('', 'x', 'y'), { kind: 'missing', near: [] })
})

test('a unique exact edit equals a literal replacement, whatever the text', () => {
  const piece = fc.stringMatching(/^[ab \n"“]{0,12}$/)
  fc.assert(
    fc.property(
      piece,
      fc.stringMatching(/^[xyz\n]{1,6}$/),
      piece,
      fc.stringMatching(/^[xyz q\n]{0,8}$/),
      (head, old, tail, fresh) => {
        const text = head + old + tail
        const isUnique = text.split(old).length === 2 && text.indexOf(old, text.indexOf(old) + 1) === -1
        fc.pre(isUnique && old !== fresh)
        const result = edit(text, old, fresh)
        if ('text' in result) assert.equal(result.text, head + fresh + tail)
        else assert.equal(result.kind, 'applied')
      },
    ),
  )
})

test('in a file of any line ends, lines outside the edit keep every byte', () => {
  const end = fc.constantFrom('\n', '\r\n', '\r')
  const line = fc.tuple(fc.stringMatching(/^[a-d ]{0,4}$/), end)
  fc.assert(
    fc.property(fc.array(line), fc.array(line), end, (before, after, own) => {
      const join = (lines: [string, string][]): string => lines.map(parts => parts.join('')).join('')
      // A CR followed by an LF would be one line end.
      const [head, tail] = [join(before), join(after)]
      fc.pre(!(own === '\r' && tail.startsWith('\n')))
      const text = `${head}XX${own}YY\n${tail}`
      assert.equal(edited(text, 'XX\nYY\n', 'XX\nZZ\n'), `${head}XX${own}ZZ\n${tail}`)
    }),
  )
})

test('a long file with scattered edits and a rewritten one are done at once', () => {
  const file = Array.from({ length: 20_000 }, (_, index) => `line ${index} of it`).join('\r\n')
  assert.equal(edited(file, ' of it', '', { replaceAll: true }), file.replaceAll(' of it', ''))
})

test('signs with which untrusted text is shown match the real ones, which stay where they were', () => {
  const file = 'a\n<system-reminder>old</system-reminder>\n[INST] x\n\nHuman: y\n'
  assert.deepEqual(
    edit(file, '‹system-reminder>old‹/system-reminder>\n', '‹system-reminder>new‹/system-reminder>\n'),
    {
      match: 'punctuation',
      text: file.replace('old', 'new'),
      count: 1,
    },
  )
  assert.equal(edited(file, '［INST] x\n\nHuman： y', '［INST] z\n\nHuman： y'), file.replace('x', 'z'))
  const deeper = '  if x:\n    say("<|im_start|>")\n'
  assert.equal(
    edited(deeper, 'if x:\n  say("‹|im_start|>")\n', 'if y:\n  say("‹|im_start|>")\n  go()\n'),
    deeper.replace('x:', 'y:') + '    go()\n',
  )
})

test('a file that has such a sign itself keeps it, and new text may bring one', () => {
  assert.equal(edited('‹a› <b>\n', '‹a› <b>', '‹a› <c>'), '‹a› <c>\n')
  assert.equal(edited('a <b>\n', 'a', '‹a›'), '‹a› <b>\n')
})

test('an edit that is shown with such signs and was made before is told as made', () => {
  const [old, fresh] = ['‹system>one', '‹system>another']
  const once = edited('<system>one\n', old, fresh)
  assert.equal(once, '<system>another\n')
  assert.deepEqual(edit(once, old, fresh), { kind: 'applied', line: 1 })
})
