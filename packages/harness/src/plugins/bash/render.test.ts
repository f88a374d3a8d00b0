import assert from 'node:assert/strict'
import { test } from 'node:test'
import { utf8Locale } from './locale.ts'
import { presentBash } from './present.ts'
import { renderBash } from './render.ts'
import type { ShownResult } from './render.ts'

const quiet: ShownResult = {
  stdout: '',
  stderr: '',
  exitCode: 0,
  signal: null,
  timedOut: false,
  timeoutMs: 1000,
  shell: 'bash',
  survivors: [],
}

test('a result is its output, and what the shell does not print in brackets', () => {
  const cases: [Partial<ShownResult>, string][] = [
    [{}, '(no output)'],
    [{ stdout: 'out\n' }, 'out'],
    [{ stdout: 'a\n\n' }, 'a\n'],
    [{ stderr: 'err\n' }, '[stderr]\nerr'],
    [{ stdout: 'out', stderr: 'err', exitCode: 2 }, 'out\n[stderr]\nerr\n[exit code: 2]'],
    [{ exitCode: 1 }, '(no output)\n[exit code: 1]'],
    [{ exitCode: null, signal: 'SIGKILL' }, '(no output)\n[killed by signal: SIGKILL]'],
    [
      { stdout: 'x', timedOut: true, exitCode: null, signal: 'SIGTERM' },
      'x\n[timed out after 1000 ms]\n[killed by signal: SIGTERM]',
    ],
    [{ stdout: 'x', timedOut: true }, 'x\n[timed out after 1000 ms]'],
    [{ stdout: 'x', shell: 'sh' }, 'x\n[there is no bash; sh ran this]'],
    [{ survivors: [{ pid: 7, command: 'node' }] }, '(no output)\n[still running: 7 node]'],
    [
      { survivors: Array.from({ length: 7 }, (_, pid) => ({ pid, command: 'x' })) },
      '(no output)\n[still running: 0 x, 1 x, 2 x, 3 x, 4 x and 2 more]',
    ],
    [
      {
        stderr: 'no',
        exitCode: 1,
        timedOut: true,
        sandbox: { mode: 'read-only', denied: true, access: 'files' },
      },
      '[stderr]\nno\n[sandbox: file access denied under read-only mode]\n[if the command needs it, call bash again with sandbox_permissions and a justification]\n[timed out after 1000 ms]\n[exit code: 1]',
    ],
    [
      { exitCode: 1, sandbox: { mode: 'workspace-write', denied: true, access: 'files' } },
      '(no output)\n[sandbox: file access denied under workspace-write mode: outside of the workspace, protected like .git/config, or secret]\n[if the command needs it, call bash again with sandbox_permissions full-access and a justification]\n[exit code: 1]',
    ],
    [
      {
        exitCode: 1,
        sandbox: { mode: 'workspace-write', denied: true, access: 'files', reason: 'it is home' },
      },
      '(no output)\n[sandbox: file access denied under workspace-write mode: it is home]\n[if the command needs it, call bash again with sandbox_permissions full-access and a justification]\n[exit code: 1]',
    ],
    [
      { exitCode: 6, sandbox: { mode: 'workspace-write', denied: true, access: 'network' } },
      '(no output)\n[sandbox: there is no network under workspace-write mode]\n[if the command needs it, call bash again with sandbox_permissions network and a justification]\n[exit code: 6]',
    ],
    [
      { exitCode: 1, sandbox: { mode: 'workspace-write', denied: true, access: 'held-names' } },
      '(no output)\n[sandbox: folders that hold protected names stay as long as dsh runs; nothing else was denied]\n[exit code: 1]',
    ],
    [{ sandbox: { mode: 'read-only', denied: false } }, '(no output)'],
    [
      { exitCode: null, task: { id: 'bash-1', moved: false } },
      '[started in the background as bash-1; you are told when it ends, task_output shows what it prints]',
    ],
    [
      { stdout: 'so far\n', exitCode: null, task: { id: 'bash-1', moved: true } },
      'so far\n[the user moved it to the background as bash-1; you are told when it ends, task_output shows what it prints]',
    ],
  ]
  for (const [part, expected] of cases) assert.equal(renderBash({ ...quiet, ...part }), expected)
})

test('a child gets a locale of UTF-8 unless it has one', () => {
  assert.deepEqual(utf8Locale({}, 'linux'), { LC_ALL: 'C.UTF-8' })
  assert.deepEqual(utf8Locale({ LANG: 'C' }, 'linux'), { LC_ALL: 'C.UTF-8' })
  assert.deepEqual(utf8Locale({ LANG: 'de_DE.UTF-8', LC_ALL: 'POSIX' }, 'darwin'), { LC_ALL: 'en_US.UTF-8' })
  assert.deepEqual(utf8Locale({ LANG: 'de_DE.UTF-8' }, 'linux'), {})
  assert.deepEqual(utf8Locale({ LANG: 'C', LC_CTYPE: 'en_US.utf8' }, 'linux'), {})
})

test('a card shows the facts of the result, whatever its text ends in', () => {
  const args = { command: 'make', description: 'build it' }
  const facts = { exitCode: 0, signal: null, timedOut: false, durationMs: 5 }
  assert.deepEqual(presentBash(args, { ...facts, more: 1 }), {
    card: 'terminal',
    title: 'build it',
    data: { command: 'make', ...facts },
  })
  assert.deepEqual(
    presentBash(args, {
      ...facts,
      exitCode: null,
      task: { id: 'bash-1', moved: true },
      sandbox: { denied: true },
    }),
    {
      card: 'terminal',
      title: 'build it',
      data: { command: 'make', ...facts, exitCode: null, task: 'bash-1', denied: true },
    },
  )
  for (const meta of [undefined, null, 1, [], {}, { ...facts, exitCode: 'x' }, { ...facts, timedOut: 0 }])
    assert.equal(presentBash(args, meta), undefined)
})
