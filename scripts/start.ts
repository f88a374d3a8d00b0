import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const task = 'The tests in this folder fail. Find the bug, fix it, and show that the tests pass.'

// The copy stays: the session that is printed can be resumed in it.
const copy = mkdtempSync(join(tmpdir(), 'dsh-sample-'))
cpSync(join(root, 'examples/sample-workspace'), copy, { recursive: true })

const command = ['run', '-m', 'demo/demo', '--permission', 'workspace-write', '--yes', '-C', copy, task]
const child = spawn(process.execPath, [join(root, 'packages/cli/bin.js'), ...command], { stdio: 'inherit' })
// A terminal sends Ctrl-C to the child as well, which ends in its own time.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', code => {
  process.exitCode = code ?? 1
})
