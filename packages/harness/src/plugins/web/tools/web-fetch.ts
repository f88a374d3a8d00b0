import { keepArtifact } from '../../../core/session/index.ts'
import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { pageOf } from '../page.ts'
import type { Page } from '../page.ts'
import { renderFetch } from '../render.ts'
import type { WebFetchResult } from '../service.ts'

export interface WebFetchToolConfig {
  readonly fetchMaxOutputBytes: number
  readonly fetchTimeoutMs: number
}

const description = 'Read a web page as Markdown, or another text on the web as it is.'

export function webFetchTool(ctx: Context, config: WebFetchToolConfig): ToolDefinition {
  return defineTool({
    name: 'web_fetch',
    description,
    deferred: true,
    parameters: { url: { type: 'string', required: true } },
    output: {
      schema: {
        url: { type: 'string', required: true },
        statusCode: { type: 'integer', required: true },
        title: { type: 'string' },
        text: { type: 'string', required: true },
        /** Lines of the text that is shown, and of all of it. */
        shownLines: { type: 'integer', required: true },
        totalLines: { type: 'integer', required: true },
        totalBytes: { type: 'integer', required: true },
        artifact: { type: 'string' },
        isPlain: { type: 'boolean', required: true },
        truncated: { type: 'boolean', required: true },
        redirect: { type: 'string' },
      },
      render: (_args, value) => renderFetch(value),
      // The text itself stands in the content.
      presentationMeta(_args, { url, statusCode, title, totalBytes, artifact, truncated, redirect }) {
        return {
          url,
          statusCode,
          totalBytes,
          truncated,
          ...(title !== undefined && { title }),
          ...(artifact !== undefined && { artifact }),
          ...(redirect !== undefined && { redirect }),
        }
      },
    },
    timeoutMs: config.fetchTimeoutMs,
    isConcurrencySafe: () => true,
    effects: ({ url }) => [{ kind: 'fetch', url }],
    presentCall: ({ url }) => ({ card: 'web', title: url, data: { url } }),
    presentResult({ url }, { meta }) {
      if (!isFields(meta) || typeof meta['statusCode'] !== 'number') return undefined
      const title = typeof meta['title'] === 'string' ? meta['title'] : url
      return { card: 'web', title, data: meta as never }
    },
    async execute({ url }, exec) {
      const result = await fetchPage(ctx, url, exec)
      const page = await pageOf(result, config.fetchMaxOutputBytes, exec.signal)
      const artifact =
        page.rest === undefined ? undefined : await keepArtifact(exec.agent?.session, page.rest)
      return {
        url: result.url,
        statusCode: result.statusCode,
        ...facts(page),
        ...(artifact !== undefined && { artifact }),
        truncated: result.truncated,
        ...(result.redirect !== undefined && { redirect: result.redirect }),
      }
    },
  })
}

function facts({ title, shown, shownLines, totalLines, totalBytes, isPlain }: Page) {
  return { ...(title !== undefined && { title }), text: shown, shownLines, totalLines, totalBytes, isPlain }
}

async function fetchPage(ctx: Context, url: string, { signal }: ToolRunContext): Promise<WebFetchResult> {
  try {
    return await ctx.web.fetch({ url }, signal)
  } catch (error) {
    // Whoever ended the call says why, not the provider that was in the middle of it.
    signal.throwIfAborted()
    throw error
  }
}
