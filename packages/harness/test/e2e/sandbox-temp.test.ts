import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const isRoot = process.getuid?.() === 0
const moduleUrl = import.meta.resolve('../../src/plugins/sandbox/temp-folders.ts')

/** As an ordinary user: no permission stops root. */
function runAsPerson(program: string, cwd: string) {
  return spawnSync(process.execPath, ['--conditions=dsh-source', '--input-type=module', '-e', program], {
    cwd,
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
    ...(isRoot && { uid: 65534, gid: 65534 }),
  })
}

test('temporary folders go with what nobody may write or list in them, and stop nobody', t => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'dsh-temp-'))
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  if (isRoot) fs.chownSync(folder, 65534, 65534)
  const program = `
    import fs from 'node:fs'
    import { sweepTempFolders } from '${moduleUrl}'
    const left = '4194305-0123456789ab'
    fs.mkdirSync(left + '/mod/pkg', { recursive: true })
    fs.mkdirSync(left + '/closed/deep', { recursive: true })
    fs.mkdirSync('other')
    fs.writeFileSync(left + '/mod/pkg/file', '')
    fs.symlinkSync('../other', left + '/link')
    for (const name of ['/mod/pkg', '/mod', '']) fs.chmodSync(left + name, 0o555)
    fs.chmodSync(left + '/closed', 0)
    fs.chmodSync('other', 0o500)
    sweepTempFolders(process.cwd(), { uid: process.getuid() })
    console.log(fs.readdirSync('.').join(), fs.statSync('other').mode & 0o777)
    fs.mkdirSync(left + '/again', { recursive: true })
    fs.chmodSync('.', 0o500)
    sweepTempFolders(process.cwd(), { uid: process.getuid() })
    fs.chmodSync('.', 0o700)
  `
  const { stdout, stderr, status } = runAsPerson(program, folder)
  assert.deepEqual([stdout, stderr, status], ['other 320\n', '', 0])
})
