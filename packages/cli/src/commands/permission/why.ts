import { nearest } from '@dsh/harness/kernel'
import type { Context } from '@dsh/harness/kernel'
import type { Explanation } from '@dsh/harness/plugins/approval'
import { ruleText } from '@dsh/harness/plugins/approval'
import { headless } from '@dsh/harness/presets/headless'
import { Session } from '@dsh/harness/session'
import { widerAccesses } from '@dsh/harness/tools'
import { SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { assertStore, compositionFiles, tellRowsThatAreOff } from '../../composition.ts'
import { endWithin } from '../../end.ts'
import { quoted, usageError } from '../../errors.ts'
import { workFolder } from '../../run/folder.ts'
import { findSession } from '../../sessions.ts'
import { inert } from '../../text.ts'
import type { Arguments, CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { accessOf } from './access.ts'

const endMs = 5000
const help = 'dsh permission why --help'

export const why: CommandBody = async (args, io) => {
  const { home, env } = io
  const tool = toolOf(args)
  const ctx = await headless({ home, env, permission: 'workspace-write', files: compositionFiles(home) })
  try {
    tellRowsThatAreOff(ctx, io)
    assertKnown(ctx, tool)
    const call = callOf(args, tool)
    const session = await sessionOf(args, ctx, io)
    const explanation = await ctx.approval.explain({ session, ...call })
    const { problems } = await ctx.approval.rules()
    for (const problem of problems) io.err.line(`note: ${inert(problem)}`)
    io.out.line(args.values.json === true ? JSON.stringify(explanation) : inert(textOf(explanation)))
    return 0
  } finally {
    await endWithin(ctx, endMs)
  }
}

interface Call {
  readonly tool: string
  readonly arguments: JsonValue
}

function toolOf({ values, words }: Arguments): string {
  const { tool = 'bash', access } = values
  if (typeof tool !== 'string' || words.length === 0)
    throw usageError('MISSING_WORD', 'dsh permission why needs COMMAND', help)
  if (access !== undefined && tool !== 'bash')
    throw usageError('OPTION_CONFLICT', '--access is for commands', help)
  return tool
}

/** What the words mean to a tool: all of a command, or the one thing that the others take. */
function callOf({ values: { access }, words }: Arguments, tool: string): Call {
  const [first = '', ...others] = words
  if (tool === 'bash') {
    const command = others.length === 0 ? first : words.map(word => quoted(word)).join(' ')
    return { tool, arguments: { command, description: '', ...wantedBy(access) } }
  }
  if (others.length > 0) throw usageError('UNEXPECTED_WORD', `--tool ${tool} takes no "${others[0]}"`, help)
  if (tool === 'write') return { tool, arguments: { file_path: first, content: '' } }
  if (tool === 'edit') return { tool, arguments: { file_path: first, old_string: 'a', new_string: 'b' } }
  if (tool === 'web_fetch') return { tool, arguments: { url: first } }
  return { tool, arguments: jsonOf(first, tool) }
}

function wantedBy(access: string | boolean | undefined): Record<string, string> {
  if (access === undefined) return {}
  const known = accessOf(access, `--access ${widerAccesses.join('|')}`)
  return { sandbox_permissions: known, justification: 'to see what becomes of it' }
}

function jsonOf(text: string, tool: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    throw usageError(
      'NOT_JSON',
      `the arguments of "${tool}" are no JSON: ${(cause as Error).message}`,
      `dsh permission why --tool ${tool} '{…}'`,
    )
  }
}

function assertKnown(ctx: Context, tool: string): void {
  const known = ctx.tools.knownNames(null)
  if (!known.has(tool))
    throw usageError('UNKNOWN_TOOL', `there is no tool "${tool}"${nearest(tool, known)}`, help)
}

/** A stored one as it is, or what a new one in the folder would be. */
async function sessionOf({ values }: Arguments, ctx: Context, io: Io): Promise<Session> {
  const { session, directory } = values
  if (typeof session === 'string') {
    if (directory !== undefined)
      throw usageError('OPTION_CONFLICT', 'a session has its folder, so -C says nothing', help)
    assertStore(ctx, io)
    const { id } = await findSession(ctx.sessionPersistence, session)
    return await ctx.sessionPersistence.view(id)
  }
  const cwd = await workFolder(io.cwd, typeof directory === 'string' ? directory : undefined)
  const id = SessionId('new')
  return Session.create(id, undefined, { version: 0, id, createdAt: Date.now(), cwd })
}

/** The decision in a line, and below it what it stands on. */
function textOf({ decision, because, rule, mode, sandbox }: Explanation): string {
  const works = sandbox.isReady ? `${sandbox.runner} (${sandbox.enforcement})` : `none: ${sandbox.reason}`
  return [
    `${decision}: ${because}`,
    ...(rule === undefined ? [] : [`  ${rule.id ?? 'this session'}: ${ruleText(rule.rule)}`]),
    `  mode ${mode}; sandbox ${works}`,
  ].join('\n')
}
