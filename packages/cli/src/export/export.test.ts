import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Draft } from '@dsh/harness/testing'
import { answerFact, callFact, headerFact, logOf, resultFact, userFact } from '@dsh/harness/testing'
import { sessionFormatVersion, SessionId } from '@dsh/protocol'
import { documentOf } from './document.ts'
import { htmlOf } from './html.ts'
import { markdownOf } from './markdown.ts'

const hostile =
  '<script>alert(1)</script>\n\n![x](javascript:a) [y](javascript:b) [z](https://example.org/"q)\u001b[31m'

function sample(...more: readonly Draft[]) {
  const events = logOf(
    ['turn/start', { turn: 1 }],
    ['step/start', { turn: 1, step: 1 }],
    ['user/message', userFact('# fix *it* <b>\n```\nnow')],
    ['request/header', headerFact()],
    ['assistant/message', answerFact('', ['a'])],
    ['tool/call', callFact('a')],
    ['tool/result', resultFact('a', 'some ``` output </pre>')],
    ['step/end', { turn: 1, step: 1 }],
    ['step/start', { turn: 1, step: 2 }],
    ['assistant/message', answerFact(`**Done**\n\n${hostile}`, [], { step: 2 })],
    ['step/end', { turn: 1, step: 2 }],
    ['turn/end', { turn: 1, reason: { kind: 'interrupted' } }],
    ...more,
  )
  const header = { version: sessionFormatVersion, id: SessionId('s1'), createdAt: 0, cwd: '/srv/app' }
  return documentOf({ header, events })
}

test('an export in Markdown shows prompts, tools with their output, and answers', () => {
  assert.equal(
    [...markdownOf(sample())].join(''),
    [
      '# \\# fix \\*it\\* \\<b\\> ⏎ \\`\\`\\` ⏎ now',
      'session s1 · /srv/app · 1970-01-01 00:00:00 UTC · mock/mock',
      '## Prompt',
      '````text\n# fix *it* <b>\n```\nnow\n````',
      '**tool** (1 ms)',
      '````\nsome ``` output </pre>\n````',
      `**Done**\n\n${hostile.replace('\u001b', '␛')}`,
      '**interrupted: the process ended in the middle of the turn**',
      '',
    ]
      .join('\n\n')
      .replace(/\n\n$/, '\n'),
  )
})

test('an export in HTML is one file in which nothing runs, loads or escapes its place', () => {
  const html = [...htmlOf(sample())].join('')
  assert.match(html, /^<!doctype html>\n/)
  assert.match(html, /<title># fix \*it\* &lt;b&gt; ⏎ ``` ⏎ now<\/title>/)
  assert.match(
    html,
    /<details class="tool"><summary><b>tool<\/b> .*<pre>some ``` output &lt;\/pre&gt;<\/pre><\/details>/,
  )
  assert.match(html, /<p><strong>Done<\/strong><\/p>/)
  assert.match(html, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
  assert.doesNotMatch(html, /<script|javascript:|<img|<b> ⏎/)
  assert.ok(!html.includes('\u001b'))
  assert.deepEqual(
    [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, url]) => url),
    ['https://example.org/&quot;q'],
  )
})

test('a session is headed by the title that it was given last, and not by one made of its prompt', () => {
  const title = (text: unknown, kind: string): Draft =>
    ['session/title', { title: text, messageSeqs: [], source: { kind } }] as unknown as Draft
  const headOf = (...titles: readonly Draft[]): string | undefined =>
    [...markdownOf(sample(...titles))].join('').split('\n')[0]
  assert.equal(headOf(title('fix it', 'fallback')), headOf())
  assert.equal(headOf(title('First', 'provider'), title('My <b>\nname', 'user')), '# My \\<b\\> ⏎ name')
  assert.equal(headOf(title(7, 'user'), title('  ', 'user')), headOf())
})

test('what must not leave is taken out of the head and of each entry, and counted once', () => {
  const events = logOf(['user/message', userFact('my secret plan')])
  const filter = () => {
    const seen: string[] = []
    const value = <T>(given: T): T => {
      seen.push(JSON.stringify(given))
      return JSON.parse(JSON.stringify(given).replaceAll('secret', 'own')) as T
    }
    return { seen, value }
  }
  const [entryFilter, headFilter] = [filter(), filter()]
  const header = { version: sessionFormatVersion, id: SessionId('s1'), createdAt: 0, cwd: '/secret' }
  const text = [...markdownOf(documentOf({ header, events, entryFilter, headFilter }))].join('')
  assert.ok(text.startsWith('# my own plan\n\nsession s1 · /own · '), text)
  assert.doesNotMatch(text, /secret/)
  assert.equal(entryFilter.seen.filter(each => each.includes('secret plan')).length, 1)
})
