/** What is used of the document model. */
export interface DomElement {
  readonly localName: string
  readonly textContent: string | null
  readonly firstChild: object | null
  readonly firstElementChild: DomElement | null
  readonly parentElement: DomElement | null
  readonly children: ArrayLike<DomElement>
  readonly nextElementSibling: DomElement | null
  readonly previousElementSibling: DomElement | null
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
  removeAttribute(name: string): void
  hasAttribute(name: string): boolean
  querySelector(selector: string): DomElement | null
  querySelectorAll(selector: string): readonly DomElement[]
  closest(selector: string): DomElement | null
  remove(): void
}

export interface DomDocument {
  readonly documentElement: DomElement | null
  readonly body: DomElement
  querySelector(selector: string): DomElement | null
  querySelectorAll(selector: string): readonly DomElement[]
  cloneNode(deep: true): DomDocument
}

export function parseHTML(html: string): { readonly document: DomDocument }

/** Takes the document apart. */
export class Readability {
  constructor(
    document: DomDocument,
    options: { readonly keepClasses: true; serializer(node: DomElement): DomElement },
  )
  parse(): { readonly content: DomElement | null } | null
}

interface Rule {
  readonly filter: string | readonly string[] | ((node: DomElement) => boolean)
  replacement(content: string, node: DomElement): string
}

export class TurndownService {
  constructor(options: Readonly<Record<string, string>>)
  escape: (text: string) => string
  addRule(name: string, rule: Rule): this
  turndown(node: DomElement): string
}
