import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { sessionFormatVersion, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { foldSurface } from '../../core/session/index.ts'
import { answerFact, callFact, headerFact, logOf, resultFact, userFact } from '../../testing/given.ts'
import { exportLines, readExport, Redaction } from './index.ts'
import type { ExportSource } from './index.ts'

const key = 'sk-0123456789abcdefghij'
const picture = Buffer.from([0x89, 0x50])
const report = Buffer.from(`the rest, with ${key}`)
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

function source(): ExportSource {
  const image = {
    type: 'image',
    attachment: { sha256: hashOf(picture), mediaType: 'image/png', bytes: 2 },
  } as const
  const said = userFact(`use ${key}, 漢字 "and" \\ more`, 'm')
  const result = resultFact('a', `done, see artifact:${hashOf(report)}`)
  const events = logOf(
    ['turn/start', { turn: 1 }],
    ['step/start', { turn: 1, step: 1 }],
    ['user/message', { ...said, content: [...said.content, image] }],
    ['request/header', headerFact()],
    ['assistant/message', answerFact('yes', ['a'])],
    ['tool/call', callFact('a')],
    ['tool/result', result],
    ['step/end', { turn: 1, step: 1 }],
    ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  )
  const kept = new Map([picture, report].map(bytes => [hashOf(bytes), bytes]))
  return {
    header: { version: sessionFormatVersion, id: SessionId('s'), createdAt: 1, cwd: '/home/me/work' },
    events,
    artifact: async sha256 => kept.get(sha256),
  }
}

/** The lines of a text, as a file gives them. */
async function* linesOf(text: string): AsyncGenerator<string> {
  yield* text.split('\n')
}

async function exported(redaction?: Redaction): Promise<string> {
  let text = ''
  for await (const line of exportLines(source(), redaction)) text += line
  return text
}

test('an export read back is the same session, with every byte its events name', async () => {
  const { header, events } = source()
  const back = await readExport(linesOf(await exported()))
  assert.deepEqual(back.header, header)
  assert.deepEqual(back.events, events)
  assert.deepEqual(foldSurface(back.events), foldSurface(events))
  assert.deepEqual(
    back.artifacts.map(({ mediaType, bytes }) => [mediaType, Buffer.from(bytes)]),
    [
      ['image/png', picture],
      ['application/octet-stream', report],
    ],
  )
  assert.equal(back.redacted, false)
})

test('a redacted export holds no secret, no home and no bytes but pictures, and reads back', async () => {
  const redaction = new Redaction({ secrets: ['漢字 "and"'], home: '/home/me' })
  const text = await exported(redaction)
  assert.ok(!text.includes(key) && !text.includes('/home/me') && !text.includes('漢字'))
  assert.ok(!text.includes(report.toString('base64')) && text.includes(picture.toString('base64')))
  const back = await readExport(linesOf(text))
  assert.equal(back.redacted, true)
  assert.equal(back.header.cwd, '/home/user/work')
  const [said] = back.events.flatMap(event => (event.type === 'user/message' ? [event.data.content[0]] : []))
  assert.deepEqual(said, { type: 'text', text: 'use [redacted key], [redacted secret] \\ more' })
  assert.deepEqual(
    [...redaction.counts],
    [
      ['secret', 1],
      ['key', 1],
    ],
  )
})

test('what is no export, is of a later version or was changed is refused with its line', async () => {
  const whole = await exported()
  const cases: [string, { code: string; message: RegExp }][] = [
    ['', { code: 'NOT_AN_EXPORT', message: /^line 1 / }],
    ['{"type":"session"}\n', { code: 'NOT_AN_EXPORT', message: /^line 1 / }],
    [
      whole.replace('"version":1', '"version":2'),
      { code: 'EXPORT_NEWER', message: /version 2, this dsh reads 1/ },
    ],
    [
      whole.replace('"seq":3', '"seq":4'),
      { code: 'BAD_EXPORT_LINE', message: /^line 5 has seq 4, expected 3/ },
    ],
    [
      whole.replace('{"type":"step/end"', '{"type:"step/end"'),
      { code: 'BAD_EXPORT_LINE', message: /^line 9 is not JSON/ },
    ],
    [
      whole.replace(picture.toString('base64'), 'AAAA'),
      { code: 'BAD_EXPORT_LINE', message: /^line 11 holds other bytes/ },
    ],
    [whole.replace('"id":"s",', ''), { code: 'NOT_AN_EXPORT', message: /^line 1 has no session id/ }],
    [whole.replace('"id":"s"', '"id":7'), { code: 'NOT_AN_EXPORT', message: /^line 1 has no session id/ }],
    [
      whole.replace('"createdAt":1', '"createdAt":1e999'),
      { code: 'NOT_AN_EXPORT', message: /^line 1 cannot be kept: header.createdAt is Infinity/ },
    ],
    [
      whole.replace('"turn":1', '"turn":1e999'),
      { code: 'BAD_EXPORT_LINE', message: /^line 2 cannot be kept: event.data.turn is Infinity/ },
    ],
    [
      whole.replace('"seq":0,', '"seq":0,"spill":[],'),
      { code: 'BAD_EXPORT_LINE', message: /^line 2 is no event, but a part of a stored log/ },
    ],
    [
      `${whole.split('\n')[0]}\n{"type":"dsh/end","events":0,"artifacts":0}`,
      { code: 'BAD_EXPORT_LINE', message: /^line 2 ends an export without events/ },
    ],
    [
      whole.split('\n').slice(0, 4).join('\n'),
      { code: 'BAD_EXPORT_LINE', message: /^line 4 is not the last one of an export: something cut it off/ },
    ],
    [
      whole.replace('"events":9', '"events":10'),
      {
        code: 'BAD_EXPORT_LINE',
        message: /^line 13 tells of 10 events and 2 artifacts, found 9 events and 2/,
      },
    ],
    [`${whole}{}\n`, { code: 'BAD_EXPORT_LINE', message: /^line 14 stands behind the last line/ }],
  ]
  for (const [text, expected] of cases) await assert.rejects(readExport(linesOf(text)), expected)
})

test('secrets are found in plain text, in code and in JSON inside a text, and common text is left alone', () => {
  const cases: [string, string][] = [
    ['export DEEPSEEK_API_KEY=abcd1234', 'export DEEPSEEK_API_KEY=[redacted variable]'],
    ['TOKEN="abc def"', 'TOKEN="abc def"'],
    ['PGPASSWORD=hunter22 psql', 'PGPASSWORD=[redacted variable] psql'],
    ['{"password": "hunter2hunter2"}', '{"password": "[redacted value]"}'],
    ['{\\"api_key\\":\\"a1b2c3d4e5\\"}', '{\\"api_key\\":\\"[redacted value]\\"}'],
    ['Authorization: Bearer abc.def-ghi_jkl12', 'Authorization: Bearer [redacted authorization]'],
    ['postgres://me:s3cr3t@host/db', 'postgres://me:[redacted password]@host/db'],
    ['ghp_0123456789abcdefghijABCD', '[redacted key]'],
    ['AKIAIOSFODNN7EXAMPLE', '[redacted key]'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----', '[redacted private key]'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh', '[redacted web token]'],
    ...[
      'password: string',
      'const token = createToken(session)',
      'KEY=$KEY',
      'the key= is missing',
      'https://example.org/a:b@c',
      'secret: undefined',
      `sha ${'a'.repeat(40)}`,
    ].map((text): [string, string] => [text, text]),
  ]
  for (const [text, expected] of cases) assert.equal(new Redaction().text(text), expected)
})

test('a value of any depth is gone over, and what was given stays', () => {
  const deep = JSON.parse(`${'[{"a":'.repeat(20_000)}"${key}"${'}]'.repeat(20_000)}`) as JsonValue
  let value = new Redaction().value(deep)
  for (; Array.isArray(value);) value = (value[0] as { a: JsonValue }).a
  assert.equal(value, '[redacted key]')
  const given = Object.freeze({ text: key, [key]: 1 })
  assert.deepEqual(new Redaction().value(given), { text: '[redacted key]', [key]: 1 })
  assert.equal(given.text, key)
})

test('a text made to keep the patterns busy is gone over in moments', () => {
  const parts = [
    'token:',
    'password:a',
    '-eyJ',
    '-eyJaaaaaaaaaaa.',
    '-----BEGIN PRIVATE KEY-----',
    'KEY=',
    'a-',
  ]
  const text = parts.map(part => part.repeat(Math.ceil(80_000 / part.length))).join('"')
  const gone = (): number => new Redaction().text(text).length
  assert.ok(runInNewContext('gone()', { gone }, { timeout: 20_000 }) > 0)
})

test('a secret of the environment is found inside JSON too, and before a shorter one that it begins with', () => {
  const redaction = new Redaction({
    secrets: ['two"lines', 'long-secret', 'long-secret-and-more', 'a\nb\tc\\def'],
  })
  assert.equal(redaction.text('{"command":"echo two\\"lines"}'), '{"command":"echo [redacted secret]"}')
  assert.equal(redaction.text('long-secret-and-more'), '[redacted secret]')
  assert.equal(redaction.text('"a\\nb\\tc\\\\def"'), '"[redacted secret]"')
})

test('what stands under a key that is special in JavaScript is kept, and gone over', () => {
  const given = JSON.parse(`{"a":{"__proto__":{"b":"${key}"}}}`) as JsonValue
  assert.equal(JSON.stringify(new Redaction().value(given)), '{"a":{"__proto__":{"b":"[redacted key]"}}}')
})
