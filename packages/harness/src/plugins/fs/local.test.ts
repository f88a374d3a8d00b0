import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Context } from '../../kernel/index.ts'
import { LocalFs, localFs } from './local.ts'
import type { FsTarget, FsVersion } from './service.ts'
import { publish } from './staging.ts'

function setup(options: { diffBasisMaxBytes?: number } = {}) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-fs-')))
  const local = new LocalFs({ cwd: dir, diffBasisMaxBytes: 10 * 2 ** 20, ...options })
  const path = (name: string): string => join(dir, name)
  const put = (name: string, content: string | Uint8Array): string => {
    fs.writeFileSync(path(name), content)
    return path(name)
  }
  return {
    dir,
    local,
    path,
    put,
    text: (name: string) => fs.readFileSync(path(name), 'utf8'),
    bytes: (name: string) => fs.readFileSync(path(name)),
    at: (name: string) => local.resolve(name),
    version: async (target: FsTarget) => (await local.stat(target))?.version ?? ('gone' as FsVersion),
    [Symbol.dispose]: () => fs.rmSync(dir, { recursive: true, force: true }),
  }
}

const code = (wanted: string) => (error: unknown) => {
  assert.equal((error as { code?: unknown }).code, wanted, String(error))
  return true
}

async function asNobody(job: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(65534)
  try {
    await job()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

test('a relative path starts at the given folder, else at the configured one; an absolute path at neither', async () => {
  using files = setup()
  const { local, dir, path } = files
  fs.mkdirSync(path('sub'))
  assert.equal((await local.resolve('a')).displayPath, path('a'))
  assert.equal((await local.resolve('a', { cwd: path('sub') })).displayPath, path('sub/a'))
  assert.equal((await local.resolve(path('a'), { cwd: path('sub') })).displayPath, path('a'))
  fs.symlinkSync(path('sub'), path('link'))
  const up = await local.resolve('../a', { cwd: path('link') })
  assert.equal(up.displayPath, path('a'), 'a parent is that of the real folder')
  await assert.rejects(local.resolve(' '), code('FS_NOT_FOUND'))
  await assert.rejects(local.resolve('a\0b'), code('FS_NOT_FOUND'))
  assert.equal(dir, (await local.resolve('.')).targetKey)
})

test('every call with a cancelled signal fails with FS_ABORTED, also when cancelled on the way', async () => {
  using files = setup()
  const { local, put, at } = files
  put('a', 'text')
  const target = await at('a')
  const folder = await at('.')
  const calls: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    resolve: signal => local.resolve('a', { signal }),
    stat: signal => local.stat(target, signal),
    lstat: signal => local.lstat('a', {}, signal),
    readText: signal => local.readText(target, signal),
    streamText: async signal => Array.fromAsync(await local.streamText(target, signal)),
    readBytes: signal => local.readBytes(target, signal, 10),
    listDir: signal => local.listDir(folder, signal),
    writeText: signal => local.writeText(target, 'new', undefined, signal),
    editText: signal =>
      local.editText(target, [{ oldString: 'text', newString: 'new', replaceAll: false }], undefined, signal),
  }
  for (const [name, call] of Object.entries(calls)) {
    await assert.rejects(call(AbortSignal.abort()), code('FS_ABORTED'), name)
    const controller = new AbortController()
    const running = call(controller.signal)
    controller.abort()
    await assert.rejects(running, code('FS_ABORTED'), name)
  }
  assert.equal(files.text('a'), 'text')
  assert.deepEqual(fs.readdirSync(files.dir), ['a'])
})

test('a rewrite of the same size with its old time put back is a new version', async () => {
  using files = setup()
  const { put, at, version } = files
  const path = put('a', 'one')
  const target = await at('a')
  const before = await version(target)
  const { atime, mtime } = fs.statSync(path)
  fs.writeFileSync(path, 'two')
  fs.utimesSync(path, atime, mtime)
  assert.notEqual(await version(target), before)
})

test('two spellings of a file through links are one target, and a change is seen through both', async () => {
  using files = setup()
  const { local, put, path, version } = files
  fs.mkdirSync(path('real'))
  fs.symlinkSync(path('real'), path('alias'))
  put('real/a', 'x')
  const [one, two] = [await local.resolve('real/a'), await local.resolve('alias/a')]
  assert.equal(one.targetKey, two.targetKey)
  const before = await version(one)
  await local.writeText(two, 'y')
  assert.notEqual(await version(one), before)
  assert.equal((await local.lstat('alias'))?.type, 'symlink')
  assert.equal((await local.stat(await local.resolve('alias')))?.type, 'directory')
})

test('the key of a missing file is the one it has when it is there, also below a link', async () => {
  using files = setup()
  const { local, path } = files
  fs.mkdirSync(path('real'))
  fs.symlinkSync(path('real'), path('alias'))
  const before = await local.resolve('alias/new/deep.txt')
  await local.writeText(before, 'x')
  assert.equal((await local.resolve('real/new/deep.txt')).targetKey, before.targetKey)
})

test('a path that leads through a file is not found, never a raw system error', async () => {
  using files = setup()
  const { local, put, at } = files
  put('a', '')
  await assert.rejects(at('a/b'), code('FS_NOT_FOUND'))
  const a = await at('a')
  const below = { ...a, targetKey: `${a.targetKey}/b` as typeof a.targetKey }
  assert.equal(await local.stat(below), undefined)
})

test('a name in composed letters finds the file whose name is decomposed', async () => {
  using files = setup()
  const { put, at, path } = files
  put('cafe\u0301.txt', 'x')
  assert.equal((await at('caf\u00e9.txt')).targetKey, path('cafe\u0301.txt'))
  assert.equal((await at('th\u00e9.txt')).targetKey, path('th\u00e9.txt'), 'a new file keeps its spelling')
})

test('text is the same whole and in pieces, and a byte order mark is no part of it', async () => {
  using files = setup()
  const { local, put, at } = files
  const text = '溝内渐🐳é\r\n'.repeat(60_000)
  put('a', `\ufeff${text}`)
  const target = await at('a')
  const pieces = await Array.fromAsync(await local.streamText(target))
  assert.ok(pieces.length > 2)
  assert.equal(pieces.join(''), text)
  assert.equal(await local.readText(target), text)
})

test('what is no text is refused with the reason, whole and in pieces', async () => {
  using files = setup()
  const { local, put, at, path } = files
  put('nul', Buffer.from('a\0b'))
  put('latin', Buffer.concat([Buffer.from('é � '), Buffer.from([0xe9, 0x20])]))
  put('utf16', Buffer.from('\ufeffab', 'utf16le'))
  fs.mkdirSync(path('dir'))
  const reasons = {
    nul: 'is binary, not text',
    latin: 'is not UTF-8 (byte 0xE9 at offset 7)',
    utf16: 'is UTF-16, and only UTF-8 can be handled',
  }
  for (const [name, reason] of Object.entries(reasons)) {
    const target = await at(name)
    await assert.rejects(local.readText(target), { code: 'FS_NOT_TEXT', message: `${path(name)} ${reason}` })
    await assert.rejects(async () => Array.fromAsync(await local.streamText(target)), code('FS_NOT_TEXT'))
  }
  for (const [name, wanted] of [
    ['dir', 'FS_NOT_REGULAR_FILE'],
    ['missing', 'FS_NOT_FOUND'],
  ] as const) {
    await assert.rejects(local.readText(await at(name)), code(wanted))
    await assert.rejects(async () => Array.fromAsync(await local.streamText(await at(name))), code(wanted))
  }
})

test('special files are refused or read to their end, and a pipe is never waited for', async () => {
  const local = new LocalFs({ cwd: '/', diffBasisMaxBytes: 1 })
  await assert.rejects(local.readText(await local.resolve('/dev/zero')), code('FS_NOT_REGULAR_FILE'))
  if (!fs.existsSync('/proc/self/status')) return
  assert.match(await local.readText(await local.resolve('/proc/self/status')), /^Pid:/m)
})

test('bytes up to the limit are given, one more is too many, also when it comes late', async () => {
  using files = setup()
  const { local, put, at } = files
  put('a', '12345')
  const target = await at('a')
  assert.equal(Buffer.from(await local.readBytes(target, undefined, 5)).toString(), '12345')
  await assert.rejects(local.readBytes(target, undefined, 4), code('FS_TOO_LARGE'))
  if (!fs.existsSync('/proc/self/status')) return
  const grows = await local.resolve('/proc/self/status')
  await assert.rejects(local.readBytes(grows, undefined, 10), code('FS_TOO_LARGE'), 'its size says 0')
})

test('a folder is listed in the order of code units, a broken entry beside the sound ones', async () => {
  using files = setup()
  const { local, put, at, path, dir } = files
  put('b', '12')
  put('B', '')
  put('ä', '')
  fs.mkdirSync(path('a'))
  fs.symlinkSync(path('nowhere'), path('broken'))
  fs.symlinkSync(path('b'), path('link'))
  const listed = await local.listDir(await at('.'))
  assert.deepEqual(
    listed.map(({ name, type, size, target }) => [name, type, size, target.targetKey]),
    [
      ['B', 'file', 0, path('B')],
      ['a', 'directory', undefined, path('a')],
      ['b', 'file', 2, path('b')],
      ['broken', 'other', undefined, path('broken')],
      ['link', 'file', 2, path('b')],
      ['ä', 'file', 0, path('ä')],
    ],
  )
  assert.equal(listed[4]?.target.displayPath, join(dir, 'link'))
  await assert.rejects(local.listDir(await at('missing')), code('FS_NOT_FOUND'))
  await assert.rejects(local.listDir(await at('b')), code('FS_NOT_DIRECTORY'))
})

test('what the system refuses is FS_PERMISSION_DENIED', async () => {
  using files = setup()
  const { local, at, path, put } = files
  fs.mkdirSync(path('closed'))
  put('secret', 'x')
  const [folder, secret, fresh] = [await at('closed'), await at('secret'), await at('closed/new')]
  fs.chmodSync(files.dir, 0o755)
  fs.chmodSync(path('closed'), 0)
  fs.chmodSync(path('secret'), 0)
  await asNobody(async () => {
    await assert.rejects(local.listDir(folder), code('FS_PERMISSION_DENIED'))
    await assert.rejects(local.readText(secret), code('FS_PERMISSION_DENIED'))
    await assert.rejects(local.writeText(fresh, 'x'), code('FS_PERMISSION_DENIED'))
  })
  // An ordinary user could not take it away otherwise.
  fs.chmodSync(path('closed'), 0o700)
})

test('a link that leads nowhere but to itself is an input-output fault', async () => {
  using files = setup()
  fs.symlinkSync(files.path('loop'), files.path('loop'))
  await assert.rejects(files.at('loop'), code('FS_IO_ERROR'))
})

test('containment follows links and real folders, and a name that only begins alike is outside', async () => {
  using files = setup()
  const { local, path, put } = files
  for (const name of ['root', 'root2', 'other']) fs.mkdirSync(path(name))
  fs.symlinkSync(path('other'), path('root/out'))
  fs.symlinkSync(path('root'), path('alias'))
  put('file', '')
  const root = await local.resolve('alias')
  const isIn = async (name: string): Promise<boolean> => local.contains(root, await local.resolve(name))
  assert.equal(await isIn('root'), true)
  assert.equal(await isIn('root/new/deep'), true)
  assert.equal(await isIn('root/../other/x'), false)
  assert.equal(await isIn('root/out'), false)
  assert.equal(await isIn('root/out/new'), false)
  assert.equal(await isIn('root2/x'), false)
  assert.equal(await local.contains(await local.resolve('missing'), await local.resolve('other')), false)
  assert.equal(await local.contains(await local.resolve('file'), await local.resolve('other')), false)
  assert.equal(await local.contains(await local.resolve('/'), await local.resolve('other')), true)
})

test('createIfAbsent never takes the place of anything', async () => {
  using files = setup()
  const { local, put, at, path } = files
  const intent = { kind: 'createIfAbsent' } as const
  put('there', 'old')
  fs.symlinkSync(path('nowhere'), path('dangling'))
  fs.mkdirSync(path('dir'))
  await assert.rejects(local.writeText(await at('there'), 'x', intent), {
    code: 'FS_NOT_OBSERVED',
    message: `${path('there')} exists and has not been read`,
  })
  await assert.rejects(local.writeText(await at('dangling'), 'x', intent), code('FS_NOT_OBSERVED'))
  await assert.rejects(local.writeText(await at('dir'), 'x', intent), code('FS_NOT_REGULAR_FILE'))
  assert.equal(files.text('there'), 'old')
  assert.equal(fs.readlinkSync(path('dangling')), path('nowhere'))
  assert.deepEqual(fs.readdirSync(files.dir).toSorted(), ['dangling', 'dir', 'there'])
})

test('a file that somebody else makes meanwhile survives createIfAbsent', async () => {
  using files = setup()
  const path = files.path('a')
  const staged: string[] = []
  const attempt = publish({
    path,
    displayPath: path,
    content: Buffer.from('mine'),
    replaces: undefined,
    mayOverwrite: false,
    maker: { pid: 1, umask: 0o022 },
    confirm: async () => {
      const [name = ''] = fs.readdirSync(files.dir)
      staged.push(name, files.text(name))
      fs.writeFileSync(path, 'theirs')
    },
  })
  await assert.rejects(attempt, code('FS_NOT_OBSERVED'))
  assert.equal(files.text('a'), 'theirs')
  assert.match(staged[0] ?? '', /^\.a\.1\.[-0-9a-f]{36}\.tmp$/)
  assert.equal(staged[1], 'mine')
  assert.deepEqual(fs.readdirSync(files.dir), ['a'])
})

test('a move that fails leaves the target and nothing else behind', async () => {
  using files = setup()
  const path = files.put('a', 'old')
  const attempt = publish({
    path,
    displayPath: path,
    content: Buffer.from('new'),
    replaces: fs.statSync(path, { bigint: true }),
    mayOverwrite: false,
    maker: { pid: 1, umask: 0o022 },
    confirm: async () => {
      fs.rmSync(path)
      fs.mkdirSync(path)
    },
  })
  await assert.rejects(attempt, code('EISDIR'))
  assert.deepEqual(fs.readdirSync(files.dir), ['a'])
})

test('replaceIfVersion replaces that version alone and makes nothing anew', async () => {
  using files = setup()
  const { local, put, at, path, version } = files
  put('a', 'one')
  const target = await at('a')
  const seen = await version(target)
  const done = await local.writeText(target, 'two', { kind: 'replaceIfVersion', version: seen })
  assert.equal(done.operation, 'update')
  assert.equal(done.version, await version(target), 'the version given is that of the file now')
  await assert.rejects(local.writeText(target, 'x', { kind: 'replaceIfVersion', version: seen }), {
    code: 'FS_STALE_VERSION',
    message: `${path('a')} has changed since it was read`,
  })
  fs.rmSync(path('a'))
  await assert.rejects(local.writeText(target, 'x', { kind: 'replaceIfVersion', version: done.version }), {
    code: 'FS_STALE_VERSION',
    message: `${path('a')} is gone since it was read`,
  })
  assert.deepEqual(fs.readdirSync(files.dir), [])
})

test('without intent a file is made or replaced, a folder is refused', async () => {
  using files = setup()
  const { local, at } = files
  assert.equal((await local.writeText(await at('x/y/a'), 'one')).operation, 'create')
  assert.equal((await local.writeText(await at('x/y/a'), '')).operation, 'update')
  assert.equal(files.text('x/y/a'), '')
  await assert.rejects(local.writeText(await at('x'), 'one'), code('FS_NOT_REGULAR_FILE'))
})

test('before and after are told with LF, and before is null where there was nothing to compare', async () => {
  using files = setup({ diffBasisMaxBytes: 6 })
  const { local, put, at } = files
  const sides = async (name: string, content: string) => {
    const { before, after } = await local.writeText(await at(name), content)
    return [before, after]
  }
  assert.deepEqual(await sides('new', 'a'), [null, 'a'])
  put('crlf', 'a\r\nb')
  assert.deepEqual(await sides('crlf', 'c\r\n'), ['a\nb', 'c\n'])
  put('nul', 'a\0')
  assert.deepEqual(await sides('nul', 'b'), [null, 'b'])
  put('latin', Buffer.from([0xe9]))
  assert.deepEqual(await sides('latin', 'b'), [null, 'b'])
  put('under', 'ééa')
  assert.deepEqual(await sides('under', 'b'), ['ééa', 'b'], '5 bytes')
  put('at', 'ééé')
  assert.deepEqual(await sides('at', 'b'), [null, 'b'], '6 bytes, though 3 characters')
  assert.deepEqual(await sides('at', 'ééé'), [null, 'ééé'])
})

test('the hashes are those of the bytes before and after', async () => {
  using files = setup({ diffBasisMaxBytes: 6 })
  const { local, at, put } = files
  const one = '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed'
  const two = '3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3'
  assert.deepEqual((await local.writeText(await at('a'), 'one')).hashes, { before: null, after: one })
  const edit = { oldString: 'one', newString: 'two', replaceAll: false }
  assert.deepEqual((await local.editText(await at('a'), [edit])).hashes, { before: one, after: two })
  put('big', 'x'.repeat(100))
  assert.match((await local.writeText(await at('big'), 'one')).hashes.before ?? '', /^[0-9a-f]{64}$/)
})

test('of changes that expect one version exactly one is made, and a failed one holds nobody up', async () => {
  using files = setup()
  const { local, put, at, version } = files
  put('a', 'old')
  const target = await at('a')
  const seen = { version: await version(target) }
  const results = await Promise.allSettled([
    local.writeText(target, 'one', { kind: 'replaceIfVersion', ...seen }),
    local.editText(target, [{ oldString: 'old', newString: 'two', replaceAll: false }], seen),
    local.writeText(target, 'three', { kind: 'replaceIfVersion', ...seen }),
  ])
  assert.deepEqual(
    results.map(result => result.status),
    ['fulfilled', 'rejected', 'rejected'],
  )
  assert.equal(files.text('a'), 'one')
  await local.writeText(target, 'four')
  assert.equal(files.text('a'), 'four')
})

test('two harnesses that create one file: one of them wins', async () => {
  using files = setup()
  const target = await files.at('a')
  const other = new LocalFs({ cwd: files.dir, diffBasisMaxBytes: 1 })
  const intent = { kind: 'createIfAbsent' } as const
  const results = await Promise.allSettled([
    files.local.writeText(target, 'one', intent),
    other.writeText(target, 'two', intent),
  ])
  assert.equal(results.filter(result => result.status === 'fulfilled').length, 1)
})

test('a new file has the mode of the umask, a replaced one keeps its mode', async () => {
  using files = setup()
  const { local, at, put } = files
  const mode = (name: string): string => (fs.statSync(files.path(name)).mode & 0o7777).toString(8)
  const umask = process.umask(0o027)
  try {
    await local.writeText(await at('new'), 'x')
  } finally {
    process.umask(umask)
  }
  assert.equal(mode('new'), '640')
  fs.chmodSync(put('script', 'x'), 0o4755)
  await local.writeText(await at('script'), 'y')
  assert.equal(mode('script'), '4755')
})

test('a file keeps its owner where the system allows it', { skip: process.getuid?.() !== 0 }, async () => {
  using files = setup()
  fs.chownSync(files.put('a', 'x'), 1234, 4321)
  await files.local.writeText(await files.at('a'), 'y')
  const { uid, gid } = fs.statSync(files.path('a'))
  assert.deepEqual([uid, gid], [1234, 4321])
})

test('a write through a link changes the file and keeps the link', async () => {
  using files = setup()
  files.put('real', 'x')
  fs.symlinkSync(files.path('real'), files.path('link'))
  await files.local.writeText(await files.at('link'), 'y')
  assert.equal(files.text('real'), 'y')
  assert.ok(fs.lstatSync(files.path('link')).isSymbolicLink())
})

test('a file may have the longest name there is', async () => {
  using files = setup()
  const name = 'n'.repeat(255)
  await files.local.writeText(await files.at(name), 'x')
  assert.equal(files.text(name), 'x')
})

test('the provider withdraws with its plugin, and a second one is refused', async () => {
  const ctx = new Context()
  const first = ctx.plugin(localFs)
  await first
  await assert.rejects(async () => ctx.plugin(localFs), { code: 'DUPLICATE_SERVICE' })
  assert.ok(ctx.get('fs') !== undefined)
  await first.dispose()
  assert.equal(ctx.get('fs'), undefined)
})

test('a configuration that cannot be meant is refused', async () => {
  const ctx = new Context()
  await assert.rejects(async () => ctx.plugin(localFs, { cwd: '' }), { code: 'INVALID_CONFIG' })
  for (const diffBasisMaxBytes of [0, -1, 1.5, NaN, 2 ** 40])
    await assert.rejects(async () => ctx.plugin(localFs, { diffBasisMaxBytes }), { code: 'INVALID_CONFIG' })
})
