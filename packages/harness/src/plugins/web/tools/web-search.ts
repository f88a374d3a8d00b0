import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { WebSearchResult, WebSource } from '../service.ts'
import { renderSearch } from '../render.ts'

export interface WebSearchToolConfig {
  readonly searchMaxQueries: number
  /** Sources of one call, over all of its queries. */
  readonly searchMaxResults: number
  readonly searchTimeoutMs: number
}

const description =
  'Search the web. Gives addresses to read with web_fetch, and answers where the provider has them.'

const sourceFields = {
  url: { type: 'string', required: true },
  title: { type: 'string' },
  snippet: { type: 'string' },
  publishedAt: { type: 'string' },
} as const

export function webSearchTool(ctx: Context, config: WebSearchToolConfig): ToolDefinition {
  return defineTool({
    name: 'web_search',
    description,
    deferred: true,
    parameters: {
      queries: {
        type: 'array',
        required: true,
        items: { type: 'string' },
        description: `1-${config.searchMaxQueries}, run together`,
      },
    },
    output: {
      schema: {
        answers: {
          type: 'array',
          required: true,
          items: {
            type: 'object',
            additionalProperties: false,
            properties: {
              query: { type: 'string', required: true },
              content: { type: 'string', required: true },
            },
          },
        },
        sources: {
          type: 'array',
          required: true,
          items: { type: 'object', additionalProperties: false, properties: sourceFields },
        },
        truncated: { type: 'boolean', required: true },
      },
      render: (_args, value) => renderSearch(value),
      presentationMeta: (_args, { sources, truncated }) => ({
        sources: sources.map(({ url, title }) => ({ url, ...(title !== undefined && { title }) })),
        truncated,
      }),
    },
    timeoutMs: config.searchTimeoutMs,
    isConcurrencySafe: () => true,
    presentCall: ({ queries }) => ({ card: 'web', title: queries.join(', '), data: { queries } }),
    presentResult({ queries }, { meta }) {
      if (!isFields(meta) || !Array.isArray(meta['sources'])) return undefined
      return { card: 'web', title: queries.join(', '), data: { queries, sources: meta['sources'] as never } }
    },
    async execute({ queries: given }, exec) {
      const queries = distinctQueries(given, config.searchMaxQueries)
      const results = await searchAll(ctx, queries, config.searchMaxResults, exec)
      const { sources, isCut } = merge(results, config.searchMaxResults)
      return {
        answers: results.flatMap(({ content }, index) =>
          content === undefined ? [] : [{ query: queries[index] ?? '', content }],
        ),
        sources,
        truncated: isCut || results.some(({ truncated }) => truncated),
      }
    },
  })
}

function distinctQueries(given: readonly string[], most: number): readonly string[] {
  const queries = [...new Set(given.map(query => query.trim()).filter(query => query !== ''))]
  if (queries.length > 0 && queries.length <= most) return queries
  throw new ToolArgsError([`queries: must be 1 to ${most} different texts, not ${queries.length}`])
}

/** The first failure ends the other searches, which are waited for. */
async function searchAll(
  ctx: Context,
  queries: readonly string[],
  maxResults: number,
  { agent, signal }: ToolRunContext,
): Promise<readonly WebSearchResult[]> {
  const failing = new AbortController()
  const session = agent?.session
  let first: { readonly error: unknown } | undefined
  const search = async (query: string): Promise<WebSearchResult> => {
    const request = { query, maxResults, ...(session !== undefined && { session }) }
    try {
      return await ctx.web.search(request, AbortSignal.any([signal, failing.signal]))
    } catch (error) {
      first ??= { error }
      failing.abort()
      throw error
    }
  }
  const settled = await Promise.allSettled(queries.map(search))
  signal.throwIfAborted()
  if (first !== undefined) throw first.error
  return settled.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
}

interface Merged {
  readonly sources: WebSource[]
  readonly isCut: boolean
}

/** The best of each query first, then the second of each; an address counts once. */
function merge(results: readonly WebSearchResult[], most: number): Merged {
  const ranks = Math.max(0, ...results.map(({ sources }) => sources.length))
  const byUrl = new Map<string, WebSource>()
  let isCut = false
  for (let rank = 0; rank < ranks; rank++) {
    for (const { sources } of results) {
      const source = sources[rank]
      if (source === undefined || byUrl.has(source.url)) continue
      if (byUrl.size < most) byUrl.set(source.url, source)
      else isCut = true
    }
  }
  return { sources: [...byUrl.values()], isCut }
}
