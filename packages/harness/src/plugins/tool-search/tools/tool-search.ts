import { offerTools } from '../../../core/prompt/index.ts'
import { cutText, defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { findTools } from '../find.ts'

export const toolSearchName = 'tool_search'

/** What joins a request stays there, so a search that is too wide must not bring everything. */
const maxFound = 8
const maxLineBytes = 160
const maxListed = 40

export function toolSearch(ctx: Context): ToolDefinition {
  return defineTool({
    name: toolSearchName,
    description: 'Find more tools by what they do. Those it finds are yours from the next step on.',
    parameters: { query: { type: 'string', required: true, description: 'words, or a name' } },
    deferred: true,
    isConcurrencySafe: () => true,
    execute({ query }, { agent }) {
      const tools = ctx.tools.deferred(agent ?? null).filter(({ name }) => name !== toolSearchName)
      const found = findTools(tools, query)
      if (found.length === 0) return nothing(tools.map(({ name }) => name))
      const joining = found.filter((_, index) => index < maxFound)
      if (agent !== undefined)
        offerTools(
          agent.session,
          joining.map(({ name }) => name),
        )
      const more = found.length - joining.length
      const lines = joining.map(({ name, description }) =>
        cutText(`${name}: ${oneLine(description)}`, maxLineBytes),
      )
      return [...lines, ...(more === 0 ? [] : [`${more} more match; search for fewer words`])].join('\n')
    },
  })
}

function nothing(names: readonly string[]): string {
  if (names.length === 0) return 'There are no more tools.'
  const shown = names.filter((_, index) => index < maxListed).join(', ')
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : ''
  return `No tool matches. There are: ${shown}${more}`
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
