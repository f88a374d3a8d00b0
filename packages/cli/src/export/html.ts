import { Marked } from 'marked'
import { endOf } from '../lines.ts'
import { inert, oneLine } from '../text.ts'
import { factsOf, hasFailed } from '../transcript.ts'
import type { Entry, ToolEntry } from '../transcript.ts'
import type { SessionDocument } from './document.ts'
import { styles } from './styles.ts'

/** One file that loads nothing and runs nothing, piece by piece. */
export function* htmlOf({ title, facts, entries }: SessionDocument): Generator<string> {
  const head = [
    '<!doctype html>',
    '<html lang="en">',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    '<meta name="viewport" content="width=device-width">',
    `<title>${escaped(title)}</title>`,
    `<style>${styles}</style>`,
    `<header><h1>${escaped(title)}</h1><p>${facts.map(escaped).join(' · ')}</p></header>`,
    '<main>',
  ]
  yield `${head.join('\n')}\n`
  for (const entry of entries) yield `${sectionOf(entry)}\n`
  yield '</main>\n</html>\n'
}

function sectionOf(entry: Entry): string {
  switch (entry.kind) {
    case 'prompt':
      return `<section class="prompt">${escaped(entry.text.trim())}</section>`
    case 'answer':
      return `<section class="answer">${rendered(entry.text)}</section>`
    case 'tool':
      return toolSection(entry)
    case 'retry':
      return note(`${entry.failure.code}: ${oneLine(entry.failure.message)}, asked again`)
    case 'notice':
      return note(oneLine(entry.text))
    case 'end':
      return `<p class="note failed">${escaped(endOf(entry.reason))}</p>`
  }
}

function note(text: string): string {
  return `<p class="note">${escaped(text)}</p>`
}

function toolSection(entry: ToolEntry): string {
  const { name, subject, output, changed } = entry
  const touched = changed.filter(path => path !== subject).map(path => ` → ${escaped(path)}`)
  const head = `<b>${escaped(name)}</b> <code>${escaped(oneLine(subject))}</code> <small>${escaped(factsOf(entry))}</small>`
  const state = hasFailed(entry) ? 'tool failed' : 'tool'
  return `<details class="${state}"><summary>${head}${touched.join('')}</summary><pre>${escaped(output)}</pre></details>`
}

/** HTML in Markdown is shown, not used; links lead to the web alone, and pictures are links. */
const marked = new Marked({
  renderer: {
    html: ({ text }) => escaped(text),
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      return isWeb(href) ? `<a href="${escaped(href)}" rel="noreferrer">${text}</a>` : text
    },
    image: ({ href, text }) =>
      isWeb(href)
        ? `<a href="${escaped(href)}" rel="noreferrer">${escaped(text || href)}</a>`
        : escaped(text),
  },
})

function rendered(markdown: string): string {
  return marked.parse(inert(markdown), { async: false })
}

function isWeb(href: string): boolean {
  return /^https?:\/\//i.test(href)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return inert(text).replace(/[&<>"']/g, char => entities[char] ?? char)
}
