import { isInForce, subjectText } from '@dsh/harness/plugins/approval'
import { findSession } from '../../sessions.ts'
import { unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { workFolder } from '../../run/folder.ts'
import { withReader } from '../session/reader.ts'
import { ruleLine, rulesPath, withRules } from './rules.ts'

export const ls: CommandBody = async ({ values }, io) => {
  const isJson = values.json === true
  if (typeof values.session === 'string') return await listGrants(values.session, io, { isJson })
  return await withRules(io, async file => {
    const folder = values.here === true ? await workFolder(io.cwd, undefined) : undefined
    const { rules } = await file.read()
    const shown = folder === undefined ? rules : rules.filter(({ rule }) => isInForce(rule, folder))
    for (const { id, rule } of shown)
      io.out.line(isJson ? JSON.stringify({ id, ...rule }) : ruleLine(rule, id))
    if (shown.length === 0)
      io.err.line(`no rules${folder === undefined ? ` in ${rulesPath(io)}` : ` for ${folder}`}`)
    return 0
  })
}

async function listGrants(word: string, io: Io, { isJson }: { readonly isJson: boolean }): Promise<number> {
  return await withReader(io, async ({ sessions, ctx }) => {
    const { id } = await findSession(sessions, word)
    const grants = ctx.approval.grantsOf(await sessions.view(id))
    for (const rule of grants)
      io.out.line(isJson ? JSON.stringify({ session: id, ...rule }) : unbroken(`allow ${subjectText(rule)}`))
    if (grants.length === 0) io.err.line(`nothing was allowed for session ${id}`)
    return 0
  })
}
