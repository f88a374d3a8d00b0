import { parentPort, workerData } from 'node:worker_threads'

/** What a worker is started with; any other thread only asks where this file is. */
export interface PageJob {
  readonly job: 'web page'
  readonly html: string
  readonly url: string
}

/** Where a worker starts: the bundle gives files other names. */
export const workerUrl = import.meta.url

function isJob(value: unknown): value is PageJob {
  return typeof value === 'object' && value !== null && (value as { job?: unknown }).job === 'web page'
}

if (parentPort !== null && isJob(workerData)) {
  const { readArticle } = await import('./article.ts')
  parentPort.postMessage(readArticle(workerData.html, workerData.url))
}
