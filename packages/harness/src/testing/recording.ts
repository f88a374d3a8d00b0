import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { AssertionError } from 'node:assert/strict'
import type { Context } from '../kernel/index.ts'
import {
  differenceLines,
  readRecording,
  runRecording,
  withRequests,
  writeRecording,
} from '../plugins/replay/index.ts'
import { createHarness } from './harness.ts'

export interface TestRecordingOptions {
  /** Mounts what is tested beside the plugins of the core. */
  readonly mount?: (ctx: Context) => unknown
  /** Writes the requests as they are now into the file in place of comparing them. */
  readonly update?: boolean
}

/**
 * Tests that a recorded session, made by `dsh session test record`, asks the same things as when it was recorded.
 *
 * No key, network or tool is needed. Tools that nothing mounts, and the system text, are as they were recorded; a tool of
 * a mounted plugin is compared in name, description and parameters, and never run.
 */
export function testRecording(file: string | URL, options: TestRecordingOptions = {}): void {
  const name = basename(file instanceof URL ? file.pathname : file)
  test(`the recording ${name} asks what it asked`, async t => {
    const workspace = await realpath(await mkdtemp(join(tmpdir(), 'dsh-recording-')))
    const { ctx } = await createHarness()
    t.after(async () => {
      await ctx.dispose()
      await rm(workspace, { recursive: true, force: true })
    })
    await options.mount?.(ctx)
    const recording = readRecording(await readFile(file, 'utf8'), name)
    const goOn = options.update === true
    const report = await runRecording(recording, { ctx, workspace, standIns: true, goOn, signal: t.signal })
    const { difference, made } = report
    const updated = goOn ? withRequests(recording, made) : undefined
    if (updated !== undefined) await writeFile(file, writeRecording(updated))
    else if (difference !== undefined)
      throw new AssertionError({ message: differenceLines(difference).join('\n') })
  })
}
