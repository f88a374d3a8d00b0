import { Worker } from 'node:worker_threads'
import { plainText } from './html-text.ts'
import type { PlainPage } from './html-text.ts'
import type { PageJob } from './markdown-worker.ts'

export interface MarkdownPage extends PlainPage {
  /** The page was too long, too deep or too slow to convert, and this is its bare text. */
  readonly isPlain: boolean
}

/** Longer pages take seconds and hundreds of megabytes to convert. */
const maxHtmlLength = 2_000_000
const timeLimitMs = 8000
const memoryLimitMb = 512

/**
 * A page as Markdown, with absolute links. The work is done in a thread of its own and given up after a while, so no
 * page holds up the program; what is given up is read as bare text. Rejects with the signal's reason only.
 */
export async function toMarkdown(html: string, url: string, signal: AbortSignal): Promise<MarkdownPage> {
  signal.throwIfAborted()
  const page = html.length > maxHtmlLength ? undefined : await convert(html, url, signal)
  signal.throwIfAborted()
  if (page === undefined || (page.text === '' && html.trim() !== ''))
    return { ...plainText(html), isPlain: true }
  return { ...page, isPlain: false }
}

async function convert(html: string, url: string, signal: AbortSignal): Promise<PlainPage | undefined> {
  const { workerUrl } = await import('./markdown-worker.ts')
  const job: PageJob = { job: 'web page', html, url }
  const worker = new Worker(new URL(workerUrl), {
    workerData: job,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
  })
  const { promise, resolve } = Promise.withResolvers<PlainPage | undefined>()
  const giveUp = (): void => resolve(undefined)
  const timer = setTimeout(giveUp, timeLimitMs)
  signal.addEventListener('abort', giveUp, { once: true })
  worker.once('message', (page: PlainPage) => resolve(page))
  worker.once('error', giveUp)
  worker.once('exit', giveUp)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    await worker.terminate()
  }
}
