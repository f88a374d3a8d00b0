import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readArticle } from './article.ts'
import { nestingOf, plainText } from './html-text.ts'
import { toMarkdown } from './markdown.ts'

const here = 'https://site.test/dir/page?x'

function textOf(html: string): string {
  return readArticle(html, here).text
}

describe('a page becomes Markdown', () => {
  const cases: readonly (readonly [what: string, html: string, expected: string])[] = [
    [
      'headings and words',
      '<h1>A_b *c*</h1><p>One <b>two</b> <em>three</em></p>',
      '# A_b *c*\n\nOne **two** *three*',
    ],
    [
      'links, made absolute',
      '<p><a href="a">1</a> <a href="/b">2</a> <a href="//c.test/">3</a> <a href="#d">4</a> <a href="javascript:e()">5</a> <a href="https://f.test/">https://f.test/</a></p>',
      '[1](https://site.test/dir/a) [2](https://site.test/b) [3](https://c.test/) 4 5 <https://f.test/>',
    ],
    [
      'links from a base',
      '<base href="https://b.test/x/"><p><a href="a">1</a></p>',
      '[1](https://b.test/x/a)',
    ],
    [
      'lists',
      '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol start=9><li>d</li><li>e</li></ol>',
      '- a\n  - b\n- c\n\n9. d\n10. e',
    ],
    [
      'code with its language',
      '<pre class="language-js"><code>a  = `b`\n\n  c</code></pre>',
      '```js\na  = `b`\n\n  c\n```',
    ],
    ['code that holds a fence', '<pre>a\n````\nb</pre>', '`````\na\n````\nb\n`````'],
    ['code in a line', '<p>Use <code>a_b</code></p>', 'Use `a_b`'],
    [
      'tables',
      '<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1<td>x|y<br>z</tbody></table>',
      '| A | B |\n| --- | --- |\n| 1 | x\\|y z |',
    ],
    [
      'tables without a head',
      '<table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>',
      '| 1 | 2 |\n| --- | --- |\n| 3 | 4 |',
    ],
    [
      'tables that only place things',
      '<table><tr><td><p>left</p></td><td><table><tr><td>in</td></tr></table></td></tr></table>',
      'left\n\nin',
    ],
    [
      'pictures that say something',
      '<p><img src="a.png" alt="A cat"><img src="b.png"><img src="data:x" alt="c"></p>',
      '![A cat](https://site.test/dir/a.png)',
    ],
    ['entities', '<p>&lt;b&gt; &amp;amp; &copy; &#x4e2d;&#25991;</p>', '<b> &amp; © 中文'],
  ]
  for (const [what, html, expected] of cases) test(what, () => assert.equal(textOf(html), expected))
})

describe('what a reader would not see is left out', () => {
  const cases: readonly (readonly [what: string, html: string])[] = [
    ['scripts', '<script>bad()</script>'],
    ['scripts that hold tags', '<script>"<p>bad</p>"</script>'],
    ['styles', '<style>.bad{}</style>'],
    ['noscript', '<noscript><p>bad</p></noscript>'],
    ['templates', '<template><p>bad</p></template>'],
    ['the hidden attribute', '<p hidden>bad</p>'],
    ['aria-hidden', '<p aria-hidden="true">bad</p>'],
    ['display: none', '<p style="color: red; DISPLAY : none">bad</p>'],
    ['visibility: hidden', '<p style="visibility:hidden">bad</p>'],
    ['comments', '<!-- bad -->'],
    ['comments that hold tags', '<!-- <p>bad</p> -->'],
    ['comments with a > inside', '<!-- > bad -->'],
    ['frames and forms', '<iframe src="x">bad</iframe><select><option>bad</select><button>bad</button>'],
    ['navigation', '<nav>bad</nav><footer>bad</footer><div role="navigation">bad</div>'],
  ]
  for (const [what, html] of cases) {
    test(what, () => {
      assert.equal(textOf(`<p>good</p>${html}<p>end</p>`), 'good\n\nend')
      assert.ok(
        !plainText(`<p>good</p>${html}<p>end</p>`).text.includes('bad') || /hidden|style|nav/.test(html),
      )
    })
  }

  test('in bare text too, as far as it has no style', () => {
    const inert = cases.flatMap(([, html]) => (/hidden|style=|<nav/.test(html) ? [] : [html]))
    assert.equal(inert.length, 9)
    for (const html of inert) assert.equal(plainText(`<p>good</p>${html}<p>end</p>`).text, 'good\n\nend')
  })

  test('but a comment that ends hides nothing', () => {
    for (const comment of ['<!-->', '<!--->', '<!-- --!>', '<!---->', '<!-- a -- b -->'])
      assert.match(plainText(`${comment}<p>good</p>`).text, /^good$/)
  })
})

test('the title of a page is told, on one line', () => {
  assert.equal(
    readArticle('<html><head><title> A\n B </title></head><body><p>x</p></body></html>', here).title,
    'A B',
  )
  assert.equal(plainText('<title> A\n &amp; B </title><p>x</p>').title, 'A & B')
})

test('an article is found amid what is around it', () => {
  const words = '<p>The words of the article go on for a while, with commas, and so on. </p>'.repeat(20)
  const around = '<div class="sidebar"><a href="/x">Related</a><a href="/y">More</a></div>'
  const text = textOf(`<html><body>${around}<article><h1>Title</h1>${words}</article>${around}</body></html>`)
  assert.match(text, /^(#+ Title\n\n)?The words of the article/)
  assert.ok(!text.includes('Related'))
})

test('a page keeps its code and tables, even if an article is found beside them', () => {
  const words = '<p>The words of the article go on for a while, with commas, and so on. </p>'.repeat(20)
  const data = '<div><table><tr><th>A<th>B</tr><tr><td>1<td>2</tr></table><pre>code</pre></div>'
  const text = textOf(
    `<html><body><article>${words}</article><div class="comment">${data}</div></body></html>`,
  )
  assert.ok(text.includes('| 1 | 2 |') && text.includes('```\ncode\n```'), text)
})

test('a page of 512 open elements is converted, and one of 513 is read as text', () => {
  const page = (depth: number): string => `${'<div>'.repeat(depth)}<b>x</b>`
  assert.equal(nestingOf(page(511), 512), 512)
  assert.equal(textOf(page(511)), '**x**')
  assert.equal(textOf(page(512)), 'x')
})

test('what may be left open does not nest', () => {
  for (const [page, depth] of [
    ['<p>a'.repeat(600), 1],
    [`<ul>${'<li>a<p>b'.repeat(600)}</ul>`, 3],
    [`<table>${'<tr><td>a<td><b>b</b>'.repeat(600)}</table>`, 4],
    [`<dl>${'<dt>a<dd>b'.repeat(600)}</dl>`, 2],
    ['<div><span>a</div>'.repeat(600), 2],
  ] as const)
    assert.equal(nestingOf(page, 512), depth)
})

test('nesting counts what is open, not what is in comments or closed', () => {
  assert.equal(nestingOf('<!-- <div><div><div> --><div><br><img><p></p><p></p></div><div></div>', 512), 2)
})

describe('bare text', () => {
  const cases: readonly (readonly [what: string, html: string, expected: string])[] = [
    [
      'has lines where blocks are',
      '<h2>A</h2><p>b <i>c</i></p><ul><li>d<li>e</ul>',
      '## A\n\nb c\n\n- d\n- e',
    ],
    ['knows a > in an attribute', '<a title="a > b">c</a>', 'c'],
    ['takes a lone < for one', 'a < b <3 c', 'a < b <3 c'],
    ['knows ends in capitals', '<SCRIPT>bad</SCRIPT>good', 'good'],
    ['ends with what has no end', 'a<p title="b', 'a'],
    ['drops a script without an end', 'a<script>b', 'a'],
    ['drops a comment without an end', 'a<!-- b', 'a'],
    ['replaces what is no character', '&#0;&#xd800;&#x110000;&unknown;', '\uFFFD\uFFFD\uFFFD&unknown;'],
    ['keeps letters whose small form is longer', 'İ<p>İ</p>', 'İ\nİ'],
  ]
  for (const [what, html, expected] of cases) test(what, () => assert.equal(plainText(html).text, expected))
})

test('pages are converted in a thread of their own', async () => {
  const never = new AbortController().signal
  assert.deepEqual(await toMarkdown('<title>T</title><p>a <b>b</b>', here, never), {
    title: 'T',
    text: 'a **b**',
    isPlain: false,
  })
})

test('whoever waits for a conversion may give up', async () => {
  const controller = new AbortController()
  const page = toMarkdown('<p>a'.repeat(10_000), here, controller.signal)
  controller.abort(new Error('enough'))
  await assert.rejects(page, { message: 'enough' })
})
