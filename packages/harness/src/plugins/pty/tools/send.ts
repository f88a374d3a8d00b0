import { ToolArgsError, defineTool, utf8Length } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import { MAX_TIMER_DELAY_MS } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { taskOutputOf } from '../../bash/index.ts'
import { OutputCapture } from '../../subprocess/index.ts'
import type { TaskWork } from '../../tasks/index.ts'
import { keyBytes, keyName } from '../keys.ts'
import type { PtySend, PtySendOperation, PtySendResult, PtySessions } from '../service.ts'
import { shownOutput } from '../shown.ts'
import { longestTypedLine, longLineNote, sentText } from '../texts.ts'
import { ownerOf } from './owner.ts'

interface SendArguments {
  readonly sessionId: string
  readonly text: string
  readonly keys?: readonly string[]
  readonly submit?: boolean
  readonly rows?: number
  readonly columns?: number
  readonly run_in_background?: boolean
}

const background = {
  run_in_background: { type: 'boolean', description: 'do not wait; task_output shows what comes' },
} as const

const always = {
  sessionId: { type: 'string', required: true },
  text: { type: 'string', required: true },
  keys: {
    type: 'array',
    items: { type: 'string' },
    description: 'pressed behind the text: Enter, Tab, Escape, Up, C-c …',
  },
  submit: { type: 'boolean', description: 'press Enter at the end; default true, with keys false' },
  rows: { type: 'integer', description: 'with columns: resizes first' },
  columns: { type: 'integer' },
} as const

export function terminalSend(
  ctx: Context,
  pty: PtySessions,
  { maxOutputBytes }: { readonly maxOutputBytes: number },
): ToolDefinition {
  const parameters = { ...always, ...(ctx.get('tasks') && background) } as typeof always & typeof background
  return defineTool({
    name: 'terminal_send',
    description:
      'Type into a terminal and get what it prints until a program waits for input (stdin_read), it was silent for a while (inferred_idle, which is no end), or time is up.',
    deferred: true,
    parameters,
    effects: args => [{ kind: 'command', command: commandOf(args), isTyped: true }],
    presentCall: ({ sessionId, text }) => ({ card: 'terminal', title: sessionId, data: { command: text } }),
    async execute(args, exec) {
      const owner = ownerOf(exec)
      const { rows, columns, sessionId } = args
      if (rows !== undefined && columns !== undefined) pty.resize(owner, sessionId, sizeOf(rows, columns))
      const send = sendOf(args)
      if (args.run_in_background === true) return await startTask(ctx, pty, { sessionId, send }, exec)
      const operation = pty.startSend(owner, sessionId, { ...send, signal: exec.signal })
      const result = await operation.result
      exec.signal.throwIfAborted()
      const text = sentText(await shownOutput(operation.output, maxOutputBytes, owner), result)
      return hasLongLine(send.text) && result.exitCode === undefined ? `${text}\n${longLineNote}` : text
    },
  })
}

/** As permissions judge it and a person sees it: also what is not entered yet, and what is more than text. */
function commandOf(args: SendArguments): string {
  const { text, keys, submit } = sendOf(args)
  const pressed = (keys ?? []).map(key => `<${keyName(key)}>`).join('')
  return submit && pressed === '' ? text : `${text} ${pressed === '' ? '<not entered>' : pressed}`
}

function sendOf({ text, keys, submit = keys === undefined }: SendArguments): PtySend {
  if (text.includes('\0')) throw new ToolArgsError(['text: has a NUL character'])
  keys?.forEach(keyBytes)
  return { text, submit, ...(keys !== undefined && { keys }) }
}

function sizeOf(rows: number, columns: number) {
  for (const side of [rows, columns])
    if (side < 1 || side > 1000) throw new ToolArgsError([`a terminal has no side of ${side}`])
  return { rows, columns }
}

function hasLongLine(text: string): boolean {
  return text.split('\n').some(line => utf8Length(line) > longestTypedLine)
}

async function startTask(
  ctx: Context,
  pty: PtySessions,
  { sessionId, send }: { readonly sessionId: string; readonly send: PtySend },
  exec: ToolRunContext,
): Promise<string> {
  const { tasks } = ctx
  const owner = ownerOf(exec)
  const run = (): TaskWork => {
    exec.signal.throwIfAborted()
    const stop = new AbortController()
    const patient = { isPatient: true, timeoutMs: MAX_TIMER_DELAY_MS, signal: stop.signal }
    return workOf(pty.startSend(owner, sessionId, { ...send, ...patient }), stop)
  }
  const label = `${sessionId}: ${send.text.trim() === '' ? 'keys' : send.text}`
  const { id } = await tasks.start({ kind: 'pty', label, owner, callId: exec.callId, run })
  return `[started in the background as ${id}; you are told when it ends, task_output shows what it prints]`
}

function workOf({ result, output: stdout }: PtySendOperation, stop: AbortController): TaskWork {
  const nothing = new OutputCapture({ headBytes: 0, tailBytes: 0 })
  return {
    done: result.then(end => ({ status: hasFailed(end) ? 'failed' : 'completed', detail: detailOf(end) })),
    output: taskOutputOf({ stdout, stderr: nothing }),
    kill: () => stop.abort(),
  }
}

function hasFailed({ exitCode, status }: PtySendResult): boolean {
  if (status.state === 'exited') return status.exitCode !== 0
  return exitCode !== undefined && exitCode !== 0
}

function detailOf({ wait, exitCode }: PtySendResult): string {
  return exitCode === undefined ? wait : `exit code ${exitCode}`
}
