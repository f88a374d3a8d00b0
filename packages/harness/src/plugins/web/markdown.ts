import { Worker } from 'node:worker_threads'
import { WebError } from './errors.ts'
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
 * page holds up the program; what is given up is read as bare text. Rejects with the signal's reason, or with
 * WEB_PROVIDER_ERROR where not even that can be done.
 */
export async function toMarkdown(html: string, url: string, signal: AbortSignal): Promise<MarkdownPage> {
  const job = { job: 'web page', html, url } as const
  const page = html.length > maxHtmlLength ? undefined : await runJob({ ...job, form: 'markdown' }, signal)
  const read = page ?? (await runJob({ ...job, form: 'bare text' }, signal))
  if (read !== undefined) return read
  throw new WebError('WEB_PROVIDER_ERROR', `the page at ${url} cannot be read in time`)
}

async function runJob(job: PageJob, signal: AbortSignal): Promise<MarkdownPage | undefined> {
  signal.throwIfAborted()
  const { workerUrl } = await import('./markdown-worker.ts')
  const worker = new Worker(new URL(workerUrl), {
    workerData: job,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
  })
  const { promise, resolve } = Promise.withResolvers<MarkdownPage | undefined>()
  const giveUp = (): void => resolve(undefined)
  const timer = setTimeout(giveUp, timeLimitMs)
  signal.addEventListener('abort', giveUp, { once: true })
  worker.once('message', resolve)
  worker.once('error', giveUp)
  worker.once('exit', giveUp)
  try {
    const page = await promise
    signal.throwIfAborted()
    return page
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    await worker.terminate()
  }
}
