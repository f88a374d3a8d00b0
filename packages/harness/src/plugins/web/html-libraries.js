// Plain JavaScript beside types of our own: the libraries' types need those of a browser.
export { Readability } from '@mozilla/readability'
export { parseHTML } from 'linkedom'
// The build for browsers parses nothing by itself, so it comes without a parser.
export { default as TurndownService } from 'turndown/lib/turndown.browser.cjs.js'
