import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { faultyFileSystem, logOf, userFact } from '../../testing/index.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import type { SessionRow } from '../../core/session/index.ts'
import type { FileSystem } from './files/file-system.ts'
import { encodeFrame } from './format/frames.ts'
import { localFileSystem } from './local.ts'
import { JsonlMedium } from './medium.ts'
import { chainHash, toChainLine, toHeaderLine } from './format/records.ts'

const events = logOf(['turn/start', { turn: 1 }], ['user/message', userFact('hello')])

function headerOf(id: string, cwd = '/srv'): SessionHeader {
  return { version: 0, id: SessionId(id), createdAt: 1, cwd }
}

function setup(t: TestContext, fs: FileSystem = localFileSystem) {
  const root = mkdtempSync(join(tmpdir(), 'places-'))
  t.after(() => rmSync(root, { recursive: true }))
  const medium = new JsonlMedium(root, {
    fs,
    processes: createLocalProcesses(),
    now: () => 1_700_000_000_000,
  })
  const store = async (header: SessionHeader, own: readonly SessionEvent[] = events): Promise<string> => {
    const writer = medium.begin(header)
    await writer.append(own)
    await writer.close()
    return medium.locate(header)
  }
  return { root, medium, store }
}

/** Every file below `root` with a hash of what is in it. */
function snapshot(root: string): Readonly<Record<string, string>> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      return [
        path,
        `${createHash('sha256').update(readFileSync(path)).digest('hex')} ${statSync(path).mtimeMs}`,
      ]
    }),
  )
}

function problemsOf(rows: readonly SessionRow[]): Readonly<Record<string, string>> {
  return Object.fromEntries(rows.map(row => [row.id, 'problem' in row ? row.problem : 'sound']))
}

test('broken neighbours are rows with a reason; the sound sessions are listed, and nothing is changed', async t => {
  const { root, medium, store } = setup(t)
  const path = await store(headerOf('sound'))
  const bytes = readFileSync(path)
  const place = (id: string, content: Buffer | string): void => {
    mkdirSync(join(dirname(dirname(path)), id))
    writeFileSync(join(dirname(dirname(path)), id, 'log.jsonl.zst'), content)
  }
  place('empty', '')
  place('magic', bytes.subarray(0, 4))
  place('noise', randomBytes(1 << 20))
  place('stranger', bytes)
  place(
    'newer',
    encodeFrame(`${JSON.stringify({ type: 'session', id: 'newer', version: 1, shape: 'unknown' })}\n`),
  )
  place('torn', Buffer.concat([encodeFrame(toHeaderLine(headerOf('torn'))), bytes.subarray(0, 9)]))
  place('a b', bytes)
  mkdirSync(join(dirname(dirname(path)), 'folder', 'log.jsonl.zst'), { recursive: true })
  mkdirSync(join(dirname(dirname(path)), 'nothing'))
  writeFileSync(join(root, 'README'), 'a file where projects are')
  const before = snapshot(root)
  assert.deepEqual(problemsOf(await medium.list()), {
    sound: 'sound',
    torn: 'sound',
    empty: 'the file is empty',
    magic: 'the file ends inside its header',
    noise: 'the file does not begin with a header frame',
    stranger: 'the log is that of session "sound"',
    newer: `the log was written by a newer dsh (format 1, this one knows 0): ${join(dirname(dirname(path)), 'newer/log.jsonl.zst')}`,
    'a b': 'the folder has a name that no session has',
    folder: 'this is no file',
  })
  for (const id of ['empty', 'magic', 'noise', 'stranger', 'folder']) {
    await assert.rejects(medium.read(SessionId(id)), { code: 'SESSION_DAMAGED' })
    await assert.rejects(medium.resume(SessionId(id)), { code: 'SESSION_DAMAGED' })
  }
  await assert.rejects(medium.resume(SessionId('newer')), {
    code: 'SESSION_FORMAT_NEWER',
    message: /newer\/log/,
  })
  assert.equal((await medium.read(SessionId('newer')))?.header.version, 1)
  assert.deepEqual(snapshot(root), before)
})

test('what may not be read is a row with the reason', async t => {
  const fs = faultyFileSystem(localFileSystem)
  const { medium, store, root } = setup(t, fs)
  const path = await store(headerOf('s1'))
  fs.inject({ call: 'open', nth: 1, code: 'EACCES' })
  assert.deepEqual(problemsOf(await medium.list()), { s1: 'it cannot be read (EACCES)' })
  fs.inject({ call: 'readdir', nth: 2, code: 'EACCES' })
  assert.deepEqual(problemsOf(await medium.list()), {
    '--srv--': 'the folder cannot be read: Error: EACCES: injected into readdir',
  })
  fs.inject({ call: 'file.read', nth: 1, code: 'EACCES' })
  await assert.rejects(medium.read(SessionId('s1')), {
    code: 'STORE_FAILED',
    message: `session "s1" cannot be read: permission is denied: ${path}`,
  })
  fs.inject()
  if (process.getuid?.() === 0) return
  chmodSync(path, 0)
  assert.match(problemsOf(await medium.list())['s1'] ?? '', /EACCES/)
  chmodSync(path, 0o600)
  assert.equal(existsSync(root), true)
})

test('one id in two projects is refused in both, each naming the other', async t => {
  const { root, medium, store } = setup(t)
  const first = await store(headerOf('s1'))
  const other = join(root, '--other--', 's1')
  cpSync(dirname(first), other, { recursive: true })
  const before = snapshot(root)
  const rows = await medium.list()
  assert.deepEqual(
    rows.map(row => ('problem' in row ? row.problem.replace(/^.*here and in /, '') : '')).toSorted(),
    [first, join(other, 'log.jsonl.zst')].toSorted(),
  )
  for (const attempt of [
    medium.read(SessionId('s1')),
    medium.resume(SessionId('s1')),
    store(headerOf('s1')),
  ]) {
    await assert.rejects(attempt, (error: Error & { code: string }) => {
      assert.equal(error.code, 'SESSION_AMBIGUOUS')
      assert.ok(error.message.includes(dirname(first)) && error.message.includes(other), error.message)
      return true
    })
  }
  assert.deepEqual(snapshot(root), before)
})

test('a folder that was copied under another id is not written', async t => {
  const { root, medium, store } = setup(t)
  const path = await store(headerOf('a'))
  cpSync(dirname(path), join(dirname(dirname(path)), 'b'), { recursive: true })
  const before = snapshot(root)
  await assert.rejects(medium.resume(SessionId('b')), {
    code: 'SESSION_DAMAGED',
    message: /^the folder of session "b" holds the log of session "a": /,
  })
  assert.deepEqual(snapshot(root), before)
})

test('two ids that a file system takes for one name are never mixed', async t => {
  const fold = (path: string): string => path.toLowerCase()
  const folding: FileSystem = {
    ...localFileSystem,
    open: (path, use) => localFileSystem.open(fold(path), use),
    read: path => localFileSystem.read(fold(path)),
    stat: path => localFileSystem.stat(fold(path)),
    readdir: path => localFileSystem.readdir(fold(path)),
    mkdir: path => localFileSystem.mkdir(fold(path)),
    link: (from, to) => localFileSystem.link(fold(from), fold(to)),
    rename: (from, to) => localFileSystem.rename(fold(from), fold(to)),
    unlink: path => localFileSystem.unlink(fold(path)),
    syncFolder: path => localFileSystem.syncFolder(fold(path)),
  }
  // The root itself has capitals.
  const root = mkdtempSync(join(tmpdir(), 'fold-')).toLowerCase()
  mkdirSync(root, { recursive: true })
  t.after(() => rmSync(root, { recursive: true }))
  const host = { fs: folding, processes: createLocalProcesses(), now: () => 0 }
  const medium = new JsonlMedium(root, host)
  const first = medium.begin(headerOf('ses-A'))
  await first.append(events)
  for (const isOpen of [true, false]) {
    const second = medium.begin(headerOf('ses-a'))
    await assert.rejects(second.append(events), {
      code: 'SESSION_EXISTS',
      message: /^session "ses-a" cannot be begun: session "ses-A" is there: /,
    })
    await second.close()
    await assert.rejects(medium.resume(SessionId('ses-a')), { code: 'SESSION_DAMAGED', message: /"ses-A"/ })
    if (isOpen) await first.close()
  }
  assert.deepEqual((await medium.read(SessionId('ses-A')))?.events, events)
})

test('a header may hold keys that nobody knows', async t => {
  const { medium, store } = setup(t)
  const header = { ...headerOf('s1'), colour: 'red', type: 'mine', toolStart: false } as SessionHeader
  await store(header)
  const log = await medium.read(SessionId('s1'))
  assert.deepEqual(log?.header, { ...headerOf('s1'), colour: 'red' })
  assert.equal(log?.toolStart, true)
})

test('files are for their owner alone', async t => {
  const { root, store } = setup(t)
  const path = await store(headerOf('s1'), [
    ...events,
    { ...(events[1] as SessionEvent), seq: 2, data: userFact('x'.repeat(70_000)) } as SessionEvent,
  ])
  for (const { parentPath, name } of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const { mode } = statSync(join(parentPath, name))
    assert.equal(mode & 0o777, statSync(join(parentPath, name)).isDirectory() ? 0o700 : 0o600, name)
  }
  assert.equal(path, join(root, '--srv--', 's1', 'log.jsonl.zst'))
})

test('complete lines of a cut frame stay when its rest is cut off, in one step', async t => {
  const fs = faultyFileSystem(localFileSystem)
  const { medium, store } = setup(t, fs)
  const path = await store(headerOf('s1'))
  const bytes = readFileSync(path)
  const header = encodeFrame(toHeaderLine(headerOf('s1')))
  const prev = chainHash(bytes.subarray(header.length))
  const more = [2, 3].map(seq => ({ ...(events[1] as SessionEvent), seq }) as SessionEvent)
  const lines = more.map(event => `${JSON.stringify(event)}\n`).join('')
  const frame = encodeFrame(`${toChainLine({ firstSeq: 2, count: 2, prev })}${lines}`)
  // Only the checksum is missing.
  writeFileSync(path, Buffer.concat([bytes, frame.subarray(0, -3)]))
  const seen = await medium.read(SessionId('s1'))
  assert.deepEqual(seen?.events, [...events, ...more])
  for (let nth = 1; nth < 40; nth += 1) {
    const { writer } = await medium.resume(SessionId('s1'))
    fs.inject({ nth, times: Infinity, code: 'EIO' })
    const isMended = await writer.mend().then(
      () => true,
      () => false,
    )
    fs.inject()
    await writer.close()
    assert.deepEqual((await medium.read(SessionId('s1')))?.events, [...events, ...more], `call ${nth}`)
    if (isMended) break
    assert.ok(nth < 39, 'it is never mended')
  }
  const { log, writer } = await medium.resume(SessionId('s1'))
  assert.equal(log.events.length, 4)
  assert.equal(await writer.mend(), undefined)
  await writer.close()
})

test('a session that was resumed with a cut end and published goes on behind it', async t => {
  const { medium, store } = setup(t)
  const path = await store(headerOf('s1'))
  const { size } = statSync(path)
  writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(500)]))
  const { writer } = await medium.resume(SessionId('s1'))
  await writer.append([{ ...(events[1] as SessionEvent), seq: 2 } as SessionEvent])
  await writer.close()
  assert.ok(statSync(path).size > size)
  const log = await medium.read(SessionId('s1'))
  assert.deepEqual([log?.events.length, log?.gaps], [3, []])
  truncateSync(path, size)
  assert.deepEqual((await medium.read(SessionId('s1')))?.events, events)
})

test('what dead programs left is swept away; logs, pictures and what lives are not', async t => {
  const { root, medium } = setup(t)
  const project = join(root, '--srv--')
  const self = createLocalProcesses().self()
  const left = (name: string, owner: object, files: readonly string[]): void => {
    mkdirSync(join(project, name, 'artifacts'), { recursive: true })
    writeFileSync(join(project, name, 'lock'), JSON.stringify({ ...self, since: 1, nonce: name, ...owner }))
    for (const file of files) writeFileSync(join(project, name, file), 'text of a session')
  }
  left('dead', { pid: 2 ** 22 + 1 }, ['log.jsonl.zst.1.tmp'])
  left('dead-with-picture', { pid: 2 ** 22 + 1 }, ['artifacts/abc', 'artifacts/abc.1.tmp'])
  left('stored', { pid: 2 ** 22 + 1 }, ['log.jsonl.zst', 'log.jsonl.zst.1.tmp'])
  left('alive', {}, ['log.jsonl.zst.1.tmp'])
  mkdirSync(join(project, 'just-made'))
  await medium.sweep()
  const files = readdirSync(project, { recursive: true, encoding: 'utf8' }).toSorted()
  assert.deepEqual(files, [
    'alive',
    'alive/artifacts',
    'alive/lock',
    'alive/log.jsonl.zst.1.tmp',
    'dead-with-picture',
    'dead-with-picture/artifacts',
    'dead-with-picture/artifacts/abc',
    'just-made',
    'stored',
    'stored/artifacts',
    'stored/log.jsonl.zst',
  ])
})
