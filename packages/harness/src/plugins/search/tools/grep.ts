import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { SearchError } from '../errors.ts'
import { grep } from '../grep.ts'
import type { GrepQuery } from '../grep.ts'
import { readGlob } from '../pattern.ts'
import type { GlobPattern } from '../pattern.ts'
import { findPlace } from '../place.ts'
import { grepMeta, presentSearch } from '../present.ts'
import { renderGrep } from '../render.ts'
import type { GrepMode, GrepValue } from '../render.ts'
import type { Ripgrep } from '../ripgrep.ts'
import { ignoredSchema, searchTimeoutMs } from './shared.ts'

export interface GrepConfig {
  /** Matches, or files where only files are listed, that one call gives at most. */
  readonly grepMaxMatches: number
  readonly grepMaxLineBytes: number
  /** Of all lines of one call. */
  readonly grepMaxBytes: number
  /** Output of the search program after which a search is stopped. */
  readonly rawOutputMaxBytes: number
}

export const grepSection = 'Search with grep and glob, not with bash.'

const description =
  'Search file contents by regular expression (Rust syntax), newest files first. ' +
  'What .gitignore names is left out unless path leads there; hidden files are searched.'

const maxContext = 50

export function grepTool(ctx: Context, config: GrepConfig, ripgrep: Ripgrep): ToolDefinition {
  return defineTool({
    name: 'grep',
    description,
    parameters: {
      pattern: { type: 'string', required: true },
      path: { type: 'string', description: 'file or folder' },
      include: { type: 'string', description: 'glob of files: *.{ts,tsx}' },
      output_mode: { type: 'string', enum: ['content', 'files_with_matches', 'count'] },
      context: { type: 'number', description: 'lines before and after' },
      ignore_case: { type: 'boolean' },
      multiline: { type: 'boolean', description: 'a dot matches line ends' },
      limit: { type: 'number', description: `at most ${config.grepMaxMatches}` },
      offset: { type: 'number', description: 'results to skip' },
    },
    output: {
      schema: {
        mode: { type: 'string', enum: ['content', 'files_with_matches', 'count'], required: true },
        files: { type: 'array', required: true, items: fileSchema },
        matches: { type: 'integer', required: true },
        totalFiles: { type: 'integer', required: true },
        offset: { type: 'integer', required: true },
        shown: { type: 'integer', required: true },
        isPartial: { type: 'boolean', required: true },
        unreadable: { type: 'integer', required: true },
        ignored: ignoredSchema,
        missing: { type: 'string' },
      },
      render: (_args, value) => renderGrep(value),
      presentationMeta: (_args, value) => grepMeta(value),
    },
    timeoutMs: searchTimeoutMs,
    isConcurrencySafe: () => true,
    presentCall: ({ pattern }) => ({ card: 'search', title: pattern }),
    presentResult: ({ pattern }, { meta }) => presentSearch(pattern, meta),
    async execute(args, exec): Promise<GrepValue> {
      const query = toQuery(args, config)
      const pattern = args.include === undefined ? undefined : readInclude(args.include)
      const base = pattern?.base ?? ''
      const place = await findPlace(ctx, { path: args.path, base }, exec)
      if (place !== undefined)
        return await grep(ripgrep, { place, pattern, signal: exec.signal }, { query, config })
      const { mode, offset } = query
      return { ...nothing, mode, offset, missing: base }
    },
  })
}

const fileSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    path: { type: 'string', required: true },
    count: { type: 'integer' },
    lines: {
      type: 'array',
      required: true,
      items: {
        type: 'object',
        additionalProperties: false,
        properties: {
          number: { type: 'integer', required: true },
          text: { type: 'string', required: true },
          isMatch: { type: 'boolean', required: true },
        },
      },
    },
  },
} as const

const nothing = { files: [], matches: 0, totalFiles: 0, shown: 0, isPartial: false, unreadable: 0 }

interface GrepArguments {
  readonly pattern: string
  readonly path?: string
  readonly output_mode?: GrepMode
  readonly context?: number
  readonly ignore_case?: boolean
  readonly multiline?: boolean
  readonly limit?: number
  readonly offset?: number
}

function toQuery(args: GrepArguments, { grepMaxMatches }: GrepConfig): GrepQuery {
  const { pattern: regex, path, output_mode: mode = 'content', ignore_case: ignoreCase = false } = args
  const { multiline = false, context = 0, offset = 0, limit = 0 } = args
  if (regex === '') throw new ToolArgsError(['pattern: is empty'])
  if (path?.trim() === '') throw new ToolArgsError(['path: is blank'])
  return {
    regex,
    mode,
    ignoreCase,
    multiline,
    context: Math.min(whole('context', context), maxContext),
    offset: whole('offset', offset),
    limit: Math.min(whole('limit', limit) || grepMaxMatches, grepMaxMatches),
  }
}

function whole(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new ToolArgsError([`${name}: must be a whole number from 0, not ${value}`])
}

/** One glob; several in one text are a mistake that would find nothing. */
function readInclude(text: string): GlobPattern {
  const outside = text.replace(/\{[^{}]*\}/g, '')
  if (outside.includes(',') && !/[{}]/.test(outside))
    throw new SearchError(
      'SEARCH_INVALID_PATTERN',
      `the glob "${text}" has a comma outside of braces; write {a,b}`,
    )
  return readGlob(text)
}
