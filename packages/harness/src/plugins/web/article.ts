import { parseHTML, Readability } from './html-libraries.js'
import type { DomDocument, DomElement } from './html-libraries.js'
import { nestingOf, plainText } from './html-text.ts'
import type { PlainPage } from './html-text.ts'
import { createConverter } from './markdown-rules.ts'

/** Deeper pages are made to break converters. */
const maxNesting = 512
/** The search for an article takes the cube of the depth; pages for people stay below this. */
const maxArticleNesting = 128
/** Longer pages are references rather than articles, and take as long to search as to convert. */
const maxArticleLength = 1_000_000

/** Of a whole page's text, what its article has to have so that it may stand for the page. */
const leastShare = 0.4
const leastLength = 200

const noText =
  'title,script,style,noscript,template,iframe,object,embed,svg,canvas,button,input,select,textarea,dialog,[hidden],[aria-hidden="true"]'
const aroundText =
  'nav,footer,aside,body>header,[role="navigation"],[role="banner"],[role="contentinfo"],[role="search"]'

export interface ReadPage extends PlainPage {
  readonly isPlain: boolean
}

/** A page as Markdown: its article where it has one, else all of it; one that is too deep as bare text. */
export function readArticle(html: string, url: string): ReadPage {
  const nesting = nestingOf(html, maxNesting)
  if (nesting > maxNesting) return { ...plainText(html), isPlain: true }
  const document = parse(html)
  const title = (document.querySelector('title')?.textContent ?? '').replace(/\s+/g, ' ').trim()
  const base = baseOf(document, url)
  clean(document, base)
  const mayHaveArticle = nesting <= maxArticleNesting && html.length <= maxArticleLength
  const article = mayHaveArticle ? articleOf(document) : undefined
  for (const element of document.querySelectorAll(aroundText)) element.remove()
  const whole = document.body
  const source = article !== undefined && standsFor(article, whole) ? article : whole
  const text = createConverter().turndown(source).trim()
  // What is all markup may still have words that the parser took for something else.
  if (text === '') return { ...plainText(html), isPlain: true }
  return { ...(title !== '' && { title }), text, isPlain: false }
}

function parse(html: string): DomDocument {
  const { document } = parseHTML(html)
  // What is no whole document is parsed into roots of which only the first would count.
  if (document.documentElement?.localName === 'html' && document.body.firstChild !== null) return document
  return parseHTML(`<html><body>${html}</body></html>`).document
}

function baseOf(document: DomDocument, url: string): string {
  const href = document.querySelector('base[href]')?.getAttribute('href') ?? ''
  return URL.parse(href, url)?.href ?? url
}

function clean(document: DomDocument, base: string): void {
  for (const element of document.querySelectorAll(noText)) element.remove()
  for (const element of document.querySelectorAll('[style]')) {
    if (/display\s*:\s*none|visibility\s*:\s*hidden/i.test(element.getAttribute('style') ?? ''))
      element.remove()
  }
  for (const link of document.querySelectorAll('a[href]')) point(link, 'href', base)
  for (const image of document.querySelectorAll('img')) {
    point(image, 'src', base)
    // Without words a picture says nothing in a text.
    if ((image.getAttribute('alt') ?? '').trim() === '' || !image.hasAttribute('src')) image.remove()
  }
}

/** Makes an address absolute; one that leads nowhere outside of the page goes. */
function point(element: DomElement, attribute: string, base: string): void {
  const value = element.getAttribute(attribute) ?? ''
  const url = value.startsWith('#') ? null : URL.parse(value, base)
  if (url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol))
    element.setAttribute(attribute, url.href)
  else element.removeAttribute(attribute)
}

function articleOf(document: DomDocument): DomElement | undefined {
  try {
    const copy = document.cloneNode(true)
    const reader = new Readability(copy, { keepClasses: true, serializer: node => node })
    return reader.parse()?.content ?? undefined
  } catch {
    return undefined
  }
}

/** An extraction that lost code, tables or most of the words is none. */
function standsFor(article: DomElement, whole: DomElement): boolean {
  const length = lengthOf(article)
  if (length < leastLength || length < leastShare * lengthOf(whole)) return false
  const count = (element: DomElement): number => element.querySelectorAll('pre, th').length
  return count(article) >= count(whole)
}

function lengthOf(element: DomElement): number {
  return (element.textContent ?? '').replace(/\s+/g, ' ').length
}
