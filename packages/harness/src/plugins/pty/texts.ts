import { cutText } from '../../core/tools/index.ts'
import type { PtyPage, PtySendResult, PtySession, PtyStatus, PtyWait } from './service.ts'

const waits: Readonly<Record<PtyWait, string>> = {
  stdin_read: 'stdin_read',
  inferred_idle: 'inferred_idle; it may still be working',
  timeout: 'timeout; it goes on',
  session_exit: 'session_exit',
}

/** A terminal that takes input line by line cuts longer ones, in bytes. */
export const longestTypedLine = 4095
export const longLineNote = `[a program that reads lines gets at most ${longestTypedLine} bytes of one]`

/** What a model reads after it opened a terminal. */
export function openedText(session: PtySession): string {
  return [nameOf(session), ...session.notices.map(notice => `[${notice}]`)].join('\n')
}

/** What came of a send, behind what was printed. */
export function sentText(printed: string, { wait, exitCode, status }: PtySendResult): string {
  return [
    ...(printed === '' ? ['(no output)'] : [printed.replace(/\n$/, '')]),
    ...(exitCode === undefined || exitCode === 0 ? [] : [`[exit code: ${exitCode}]`]),
    `[wait: ${waits[wait]}]`,
    sessionText(status),
  ].join('\n')
}

/** Lines of a terminal within `maxBytes`; where they are more, the last ones. */
export function pageText(
  { lines, first, total, oldest }: PtyPage,
  status: PtyStatus,
  maxBytes: number,
): string {
  const gone = oldest > 1 ? `; before ${oldest} nothing is kept` : ''
  const facts = [
    lines.length === 0
      ? `[lines: none of ${total}${gone}]`
      : `[lines: ${first}-${first + lines.length - 1} of ${total}${gone}]`,
    sessionText(status),
  ]
  const mark = (bytes: number): string =>
    `[output truncated: ${bytes} bytes before this; ask for fewer lines]\n`
  const body = cutText(lines.join('\n'), maxBytes, { keep: 'tail', mark })
  return [...(body === '' ? [] : [body]), ...facts].join('\n')
}

/** One line each: `pty-1 build: shell, running, workspace-write`. */
export function listText(sessions: readonly PtySession[]): string {
  return sessions.length === 0 ? 'no terminals' : sessions.map(nameOf).join('\n')
}

export function closedText(id: string, status: PtyStatus): string {
  return status.state === 'running'
    ? `${id} is closed`
    : `${id} had ended; it is closed\n${sessionText(status)}`
}

function nameOf({ sessionId, name, type, status, mode, pid }: PtySession): string {
  const parts = [
    type,
    status.state === 'running' ? `running as process ${pid}` : 'exited',
    mode ?? 'not confined',
  ]
  return `${sessionId}${name === undefined ? '' : ` ${name}`}: ${parts.join(', ')}`
}

function sessionText(status: PtyStatus): string {
  if (status.state === 'running') return '[session: running]'
  const { exitCode, signal } = status
  return `[session: exited${exitCode === null ? '' : ` code=${exitCode}`}${signal === null ? '' : ` signal=${signal}`}]`
}
