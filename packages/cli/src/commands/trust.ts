import { resolve } from 'node:path'
import { LocalTrust, projectParts } from '@dsh/harness/plugins/trust'
import { CliError, exitCode, usageError } from '../errors.ts'
import { canAsk } from '../person.ts'
import { workFolder } from '../run/folder.ts'
import { inert, unbroken } from '../text.ts'
import { askTrust, keepYes } from '../trust/ask.ts'
import { entryLine, introLine, partLines } from '../trust/text.ts'
import type { Arguments, CommandBody } from '../command.ts'
import type { Io } from '../io.ts'

/** `ls` and `rm` are actions; a folder of such a name is `./ls`. */
export const trust: CommandBody = async (args, io) => {
  const [action, folder, ...more] = args.words
  const known = new LocalTrust(io.home)
  if (action === 'ls' && folder === undefined) return await list(known, args, io)
  if (action === 'rm' && folder !== undefined && more.length === 0) {
    const path = await workFolder(io.cwd, folder).catch(() => resolve(io.cwd, folder))
    await known.revoke(path)
    io.out.line(`not trusted from now on: ${unbroken(path)}`)
    return exitCode.ok
  }
  if (action === 'ls' || action === 'rm' || folder !== undefined)
    throw usageError(
      'UNEXPECTED_WORD',
      `trust takes one folder, ls, or rm and a folder`,
      `${io.command} trust --help`,
    )
  return await grant(known, await workFolder(io.cwd, action), { args, io })
}

async function list(known: LocalTrust, { values }: Arguments, io: Io): Promise<number> {
  const { entries, problem } = await known.list()
  if (problem !== undefined) io.err.line(`note: ${inert(problem)}`)
  if (values['json'] === true) for (const entry of entries) io.out.line(JSON.stringify(entry))
  else if (entries.length === 0) io.err.line('no folder is trusted')
  else io.out.write(entries.map(entryLine).join(''))
  return exitCode.ok
}

async function grant(
  known: LocalTrust,
  folder: string,
  { args: { values }, io }: { readonly args: Arguments; readonly io: Io },
): Promise<number> {
  const found = projectParts(folder, { home: io.home })
  const question = { folder, found, isChanged: false }
  if (values['yes'] === true || !canAsk(io)) io.err.write(introLine(folder, false) + partLines(found))
  const isYes = values['yes'] === true || (canAsk(io) && (await askTrust(question, io)))
  if (!isYes)
    throw new CliError('NOT_CONFIRMED', 'nothing was changed', {
      exitCode: exitCode.denied,
      fix: `${io.command} trust ${unbroken(folder)} --yes`,
    })
  await keepYes(known, question)
  io.out.line(`trusted from now on: ${unbroken(folder)}`)
  return exitCode.ok
}
