import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { defineTool } from '../core/tools/index.ts'
import type { Context } from '../kernel/index.ts'
import { text, toolCall } from '../plugins/llm-scripted/index.ts'
import { recordSession, writeRecording } from '../plugins/replay/index.ts'
import { createHarness, say } from './harness.ts'
import { testRecording } from './recording.ts'

const greet = defineTool({ name: 'greet', description: 'Greets.', parameters: {}, execute: () => 'hello' })
const mount = (ctx: Context): void => void ctx.tools.register(greet)

const folder = mkdtempSync(join(tmpdir(), 'dsh-recording-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'greet.recording.jsonl')

const { ctx, agent } = await createHarness([toolCall('greet', {}), text('hello to you')])
mount(ctx)
const who = agent()
who.followup(say('greet me'))
await who.whenIdle()
writeFileSync(file, writeRecording(recordSession(who.session)))
await ctx.dispose()

testRecording(file, { mount })
testRecording(file)
testRecording(file, { mount, update: true })
