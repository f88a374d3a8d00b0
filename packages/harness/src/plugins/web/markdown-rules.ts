import { TurndownService } from './html-libraries.js'
import type { DomElement } from './html-libraries.js'

/** Converts nodes to Markdown: code as it stands, tables kept, nothing escaped. */
export function createConverter(): TurndownService {
  const service = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', emDelimiter: '*' })
  // Whoever reads this reads words, and snake_case is one.
  service.escape = text => text
  service.addRule('code block', {
    filter: 'pre',
    replacement: (_content, node) => fenced(node.textContent ?? '', languageOf(node)),
  })
  service.addRule('item', { filter: 'li', replacement: item })
  service.addRule('link', {
    filter: node => node.localName === 'a',
    replacement: (content, node) => linked(oneLine(content), node.getAttribute('href')),
  })
  addTableRules(service)
  return service
}

/** Cells are counted as they stand: a span that claims a million columns makes none. */
function addTableRules(service: TurndownService): void {
  const headOf = gridReader()
  service.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content, node) =>
      headOf(node) === undefined ? block(content) : ` ${oneLine(content).replaceAll('|', '\\|')} |`,
  })
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => {
      const head = headOf(node)
      if (head === undefined) return block(content)
      const rule = head === node ? `|${' --- |'.repeat(node.children.length)}\n` : ''
      return `|${content}\n${rule}`
    },
  })
  service.addRule('table', {
    filter: ['table', 'thead', 'tbody', 'tfoot'],
    replacement: (content, node) => (node.localName === 'table' ? block(content) : content),
  })
}

/**
 * Gives the first row of the table that a node stands in, where the table holds data: undefined for one that only
 * places things on the page. Looks at each table once.
 */
function gridReader(): (node: DomElement) => DomElement | undefined {
  const heads = new Map<DomElement, DomElement | undefined>()
  return node => {
    const table = node.closest('table')
    if (table === null) return undefined
    if (!heads.has(table)) heads.set(table, headOfGrid(table))
    return heads.get(table)
  }
}

function headOfGrid(table: DomElement): DomElement | undefined {
  if (table.querySelector('table') !== null) return undefined
  const [first, second] = table.querySelectorAll('tr')
  return second === undefined || (first?.children.length ?? 0) < 2 ? undefined : first
}

const block = (content: string): string => `\n\n${content.trim()}\n\n`

const oneLine = (content: string): string => content.trim().replace(/\s*\n\s*/g, ' ')

function item(content: string, node: DomElement): string {
  const { parentElement: list } = node
  const isLast = node.nextElementSibling === null
  const number = list?.localName === 'ol' ? placeOf(node, list) : undefined
  const mark = number === undefined ? '- ' : `${number}. `
  const text = content.trim().replaceAll('\n', `\n${' '.repeat(mark.length)}`)
  return `${mark}${text}${isLast ? '' : '\n'}`
}

const places = new WeakMap<DomElement, number>()

/** Items are converted in order, so each finds the place of the one before it. */
function placeOf(node: DomElement, list: DomElement): number {
  const before = node.previousElementSibling
  const start = Number.parseInt(list.getAttribute('start') ?? '1', 10) || 1
  const place = before === null ? start : (places.get(before) ?? start - 1) + 1
  places.set(node, place)
  return place
}

function linked(text: string, href: string | null): string {
  if (href === null || text === '') return text
  return text === href ? `<${href}>` : `[${text}](${href})`
}

function fenced(code: string, language: string): string {
  let fence = '```'
  for (const [run] of code.matchAll(/`{3,}/g)) if (run.length >= fence.length) fence = `${run}\``
  return `\n\n${fence}${language}\n${code.replace(/^\n/, '').trimEnd()}\n${fence}\n\n`
}

function languageOf(pre: DomElement): string {
  const nodes = [pre.firstElementChild, pre, pre.parentElement]
  const classes = nodes.map(node => node?.getAttribute('class') ?? '').join(' ')
  return /(?:^|\s)(?:language|lang|highlight(?:-source)?)-([\w+#]+)/.exec(classes)?.[1] ?? ''
}
