import { parentPort, workerData } from 'node:worker_threads'

/** What a worker is started with; any other thread only asks where this file is. */
export interface PageJob {
  readonly job: 'web page'
  readonly html: string
  readonly url: string
  /** Bare text is read in a time that the page's length alone decides. */
  readonly form: 'markdown' | 'bare text'
}

/** Where a worker starts: the bundle gives files other names. */
export const workerUrl = import.meta.url

function isJob(value: unknown): value is PageJob {
  return typeof value === 'object' && value !== null && (value as { job?: unknown }).job === 'web page'
}

if (parentPort !== null && isJob(workerData)) {
  const { html, url, form } = workerData
  if (form === 'markdown') {
    const { readArticle } = await import('./article.ts')
    parentPort.postMessage(readArticle(html, url))
  } else {
    const { plainText } = await import('./html-text.ts')
    parentPort.postMessage({ ...plainText(html), isPlain: true })
  }
}
