import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { quoted } from '../errors.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

type Uid = Place['runtime']['uid']

const { R_OK, W_OK, X_OK } = constants

/** What dsh writes in its home; what is not there yet is made. */
const parts = ['sessions', 'sessions.sqlite', 'cache', 'restore', 'dsh.yml', 'default-model.json']

/** Whether the home is there, is the person's own, and can be written. */
export async function lookAtHome({ home, env, runtime: { uid } }: Place): Promise<Findings> {
  const found = await statOf(home)
  const move = 'export DSH_HOME=…   # a folder that you may write'
  if (found === undefined) {
    const above = await nearestFolder(home)
    return (await may(above, W_OK | X_OK))
      ? [note('HOME_NEW', `${home} is not there yet; the first run makes it`), ...relative(env)]
      : [problem('HOME_NOT_WRITABLE', `${home} is not there, and ${above} may not be written`, move)]
  }
  if (!found.isDirectory()) return [problem('HOME_NO_FOLDER', `${home} is no folder`, move)]
  if (!(await may(home, R_OK | W_OK | X_OK))) {
    const fix = isForeign(found, uid) ? own(home) : `chmod u+rwx ${quoted(home)}`
    return [problem('HOME_NOT_WRITABLE', `${home} may not be read and written`, fix)]
  }
  const faults = [
    ...ownershipOf(home, found, uid),
    ...(await Promise.all(parts.map(name => lookAtPart(join(home, name), uid)))).flat(),
    ...relative(env),
  ]
  return faults.length > 0 ? faults : [ok(env['DSH_HOME'] ? `${home} (DSH_HOME)` : home)]
}

async function lookAtPart(path: string, uid: Uid): Promise<Findings> {
  const found = await statOf(path)
  if (found === undefined) return []
  const needed = found.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK
  if (await may(path, needed)) return isForeign(found, uid) ? [foreign(path, found, uid)] : []
  const fix = isForeign(found, uid) ? own(path) : `chmod -R u+rwX ${quoted(path)}`
  return [problem('HOME_NOT_WRITABLE', `${path} may not be read and written`, fix)]
}

function ownershipOf(home: string, found: Stats, uid: Uid): Findings {
  if (isForeign(found, uid)) return [foreign(home, found, uid)]
  const isOpen = uid !== undefined && (found.mode & 0o077) !== 0
  return isOpen ? [note('HOME_OPEN', `${home} may be entered by others`, `chmod 700 ${quoted(home)}`)] : []
}

/** Root writes what the owner then cannot. */
function foreign(path: string, found: Stats, uid: Uid): Findings[number] {
  return note('HOME_FOREIGN', `${path} belongs to user ${found.uid}, you are user ${uid}`, own(path))
}

function isForeign(found: Stats, uid: Uid): boolean {
  return uid !== undefined && uid !== found.uid
}

function own(path: string): string {
  return `sudo chown -R "$(id -u)" ${quoted(path)}`
}

function relative(env: Place['env']): Findings {
  const home = env['DSH_HOME']
  if (home === undefined || home === '' || isAbsolute(home)) return []
  return [
    note(
      'HOME_RELATIVE',
      'DSH_HOME is a relative path: each folder has a home of its own',
      'export DSH_HOME=/…',
    ),
  ]
}

/** The first folder above `path` that is there. */
export async function nearestFolder(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    if ((await statOf(at))?.isDirectory() === true || at === dirname(at)) return at
  }
}

/** Undefined where nothing is there, or where it may not be seen. */
async function statOf(path: string): Promise<Stats | undefined> {
  return await stat(path).catch(() => undefined)
}

async function may(path: string, mode: number): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  )
}
