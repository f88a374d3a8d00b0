/** What a command came to, as a program or a surface reads it; the outputs are as a model sees them. */
export interface ShownResult {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly timeoutMs: number
  readonly shell: 'bash' | 'sh'
  readonly survivors: readonly { readonly pid: number; readonly command: string }[]
  readonly sandbox?: {
    readonly mode: string
    readonly denied: boolean
    readonly access?: 'files' | 'network' | 'held-names'
    readonly reason?: string
  }
  /** The task that goes on with the command. */
  readonly task?: { readonly id: string; readonly moved: boolean }
}

const maxSurvivors = 5

/** What a model reads of a command: its output, then in brackets what the shell does not print. */
export function renderBash(result: ShownResult): string {
  const { stdout, stderr, survivors } = result
  const printed = [
    ...(stdout === '' ? [] : [withoutLastEnd(stdout)]),
    ...(stderr === '' ? [] : [`[stderr]\n${withoutLastEnd(stderr)}`]),
  ]
  if (result.task !== undefined) return [...printed, taskNote(result.task)].join('\n')
  const notes = [
    ...(printed.length === 0 ? ['(no output)'] : []),
    ...(result.shell === 'sh' ? ['[there is no bash; sh ran this]'] : []),
    ...sandboxNotes(result),
    ...(survivors.length === 0 ? [] : [`[still running: ${nameSurvivors(survivors)}]`]),
    ...(result.timedOut ? [`[timed out after ${result.timeoutMs} ms]`] : []),
    ...exitNote(result),
  ]
  return [...printed, ...notes].join('\n')
}

function taskNote({ id, moved }: NonNullable<ShownResult['task']>): string {
  const how = moved ? 'the user moved it to the background as' : 'started in the background as'
  return `[${how} ${id}; you are told when it ends, task_output shows what it prints]`
}

function sandboxNotes({ sandbox }: ShownResult): string[] {
  if (sandbox?.denied !== true) return []
  const { mode, access } = sandbox
  if (access === 'held-names')
    return ['[sandbox: folders that hold protected names stay as long as dsh runs; nothing else was denied]']
  if (access === 'network')
    return [`[sandbox: there is no network under ${mode} mode]`, askAgain('sandbox_permissions network')]
  if (mode === 'read-only')
    return [`[sandbox: file access denied under ${mode} mode]`, askAgain('sandbox_permissions')]
  if (sandbox.reason !== undefined)
    return [
      `[sandbox: file access denied under ${mode} mode: ${sandbox.reason}]`,
      askAgain('sandbox_permissions full-access'),
    ]
  return [
    `[sandbox: file access denied under ${mode} mode: outside of the workspace, protected like .git/config, or secret]`,
    askAgain('sandbox_permissions full-access'),
  ]
}

function askAgain(permissions: string): string {
  return `[if the command needs it, call bash again with ${permissions} and a justification]`
}

function exitNote({ exitCode, signal }: ShownResult): string[] {
  if (signal !== null) return [`[killed by signal: ${signal}]`]
  return exitCode === 0 ? [] : [`[exit code: ${exitCode}]`]
}

export function nameSurvivors(survivors: ShownResult['survivors']): string {
  const named = survivors.flatMap(({ pid, command }, index) =>
    index < maxSurvivors ? [`${pid} ${command}`] : [],
  )
  const more = survivors.length - named.length
  return named.join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function withoutLastEnd(text: string): string {
  return text.replace(/\n$/, '')
}
