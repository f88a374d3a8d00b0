import type { Redaction } from '@dsh/harness/plugins/session-export'
import { CliError, exitCode, quoted } from '../errors.ts'
import { unbroken } from '../text.ts'

/** What was taken out of something that may leave the machine, undefined where nothing was looked for. */
export function takenOutText(redaction: Pick<Redaction, 'counts'> | undefined): string {
  if (redaction === undefined) return 'nothing was taken out: look before you give it away'
  const counts = [...redaction.counts].map(([kind, count]) => `${count} × ${kind}`)
  const what =
    counts.length === 0 ? 'nothing that looks like a secret was found' : `taken out: ${counts.join(', ')}`
  return `${what}; look before you give it away`
}

/** Why `file` was not written; `instead` is a command that writes another one. */
export function unwritable(file: string, { cause, instead }: { cause: unknown; instead: string }): CliError {
  const { code } = cause as NodeJS.ErrnoException
  const isThere = code === 'EEXIST'
  const why = isThere ? 'is there already' : `cannot be written (${code ?? String(cause)})`
  return new CliError('OUTPUT_FILE', `"${unbroken(file)}" ${why}`, {
    cause,
    exitCode: exitCode.usage,
    fix: isThere ? `rm ${quoted(file)}` : instead,
  })
}
