import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { attachments } from '../../src/plugins/attachments/index.ts'
import { fs as files } from '../../src/plugins/fs/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { createHarness, reply, startMockProvider } from '../../src/testing/index.ts'
import { png } from '../../src/testing/pictures.ts'
import { turn } from './composed.ts'

/** Real tools, a real store and a provider on a socket, whose model sees pictures or is known not to. */
async function setup(t: TestContext, images: boolean) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-pictures-')))
  const mock = await startMockProvider()
  const { ctx } = await createHarness()
  const providers = { deepseek: { models: { 'deepseek-flash': { images } } } }
  await ctx.plugin(llmOpenAIChat, { env: mock.env, providers })
  await ctx.plugin(storeJsonl, { root: join(dir, 'sessions') })
  await ctx.plugin(attachments)
  await ctx.plugin(files, { cwd: dir })
  t.after(async () => {
    await ctx.dispose()
    await mock.close()
    fs.rmSync(dir, { recursive: true })
  })
  const route = { provider: 'deepseek', model: 'deepseek-flash' }
  return { dir, mock, agent: ctx.agentLoop.create(SessionId('a'), route, { cwd: dir }) }
}

test('a picture that is read goes over the wire as its own bytes, and the log only names it', async t => {
  const { dir, mock, agent } = await setup(t, true)
  const bytes = png(30, 20)
  fs.writeFileSync(join(dir, 'a.png'), bytes)
  mock.push(reply.toolCall('read', { file_path: 'a.png' }), reply.text('seen'))
  await turn(agent, 'look')
  const data = bytes.toString('base64')
  const messages = mock.requests[1]?.body.messages ?? []
  const [intro, picture] = (messages.at(-1)?.content ?? []) as { readonly type: string }[]
  assert.equal(messages.at(-1)?.role, 'user')
  assert.equal(intro?.type, 'text')
  assert.deepEqual(picture, { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } })
  assert.match(JSON.stringify(messages.at(-2)), /"role":"tool".*30×20 pixels/)
  assert.doesNotMatch(JSON.stringify(agent.session.events), new RegExp(data.replace(/\W.*/, '')))
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
})

test('a model that is known to see no pictures is told that there is one', async t => {
  const { dir, mock, agent } = await setup(t, false)
  fs.writeFileSync(join(dir, 'a.png'), png(30, 20))
  mock.push(reply.toolCall('read', { file_path: 'a.png' }), reply.text('a pity'))
  await turn(agent, 'look')
  const said = JSON.stringify(mock.requests[1]?.body.messages)
  assert.match(said, /\[Image not shown: this model reads text only \(image\/png, 30×20 pixels\)\.\]/)
  assert.doesNotMatch(said, /image_url/)
  assert.equal(agent.session.last('turn/end')?.data.reason.kind, 'completed')
})
