import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

const timeLimitMs = 3000
/** Older ones read the settings of the person, whatever they are told. */
const oldest = [2, 32] as const

/** What keeps the files of each step. */
export async function lookAtGit({ env }: Place): Promise<Findings> {
  try {
    const { stdout } = await promisify(execFile)('git', ['--version'], {
      cwd: '/',
      env: { PATH: env['PATH'] ?? '', LC_ALL: 'C' },
      timeout: timeLimitMs,
      killSignal: 'SIGKILL',
    })
    return judgeGit(stdout)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'is not in PATH' : `cannot be run (${code ?? 'it takes too long'})`
    const fix = 'install git, from https://git-scm.com/downloads'
    return [problem('GIT_MISSING', `git ${why}: files cannot be taken back`, fix)]
  }
}

export function judgeGit(printed: string): Findings {
  const [text = '', major = '0', minor = '0'] = /(\d+)\.(\d+)\S*/.exec(printed) ?? []
  const isOld = Number(major) < oldest[0] || (Number(major) === oldest[0] && Number(minor) < oldest[1])
  return isOld
    ? [note('GIT_OLD', `git ${text || 'of an unknown version'}; ${oldest.join('.')} or newer is better`)]
    : [ok(`git ${text}`)]
}
