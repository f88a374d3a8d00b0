import { resolve } from 'node:path'
import { headless } from '@dsh/harness/presets/headless'
import { CliError } from '../errors.ts'
import { loadSchema } from '../run/answer-schema.ts'
import { assertStore, compositionFiles, PluginFailures, tellRowsThatAreOff } from '../composition.ts'
import { againCommand, withPrompt } from '../run/keep-prompt.ts'
import { readLastModel } from '../run/last-model.ts'
import { runOptions } from '../run/options.ts'
import type { RunOptions } from '../run/options.ts'
import { readPrompt } from '../run/prompt.ts'
import { Stop } from '../run/signals.ts'
import { projectFiles } from '../trust/project-files.ts'
import { work } from '../run/work.ts'
import { withFix } from '../with-fix.ts'
import type { Arguments, CommandBody } from '../command.ts'
import type { Io } from '../io.ts'

export const run: CommandBody = async (args, io) => {
  const options = runOptions(args)
  const stop = new Stop(io)
  try {
    const prompt = await readPrompt(args.words, io, stop.signal)
    return await begin(prompt, { args, options, stop, io })
  } catch (error) {
    if (stop.exitCode === undefined) throw error
    const what = `${stop.received} came before the model was asked`
    throw new CliError('CANCELLED', what, { cause: error, exitCode: stop.exitCode })
  } finally {
    stop.forget()
  }
}

interface Order {
  readonly args: Arguments
  readonly options: RunOptions
  readonly stop: Stop
  readonly io: Io
}

async function begin(prompt: string, { args, options, stop, io }: Order): Promise<number> {
  try {
    const { home, env, cwd } = io
    const { permission = 'workspace-write', yes, limits, schema: file } = options
    const failures = new PluginFailures(io)
    const project = await projectFiles(resolve(cwd, options.directory ?? '.'), io, stop.signal)
    const files = [...compositionFiles(home), ...project.files]
    const [ctx, schema, last] = await Promise.all([
      headless({
        home,
        env,
        permission,
        yes,
        limits,
        files,
        fence: project.fence,
        onFailure: failures.listener,
      }),
      file === undefined ? undefined : loadSchema(resolve(cwd, file), stop.signal),
      readLastModel(home),
    ])
    tellRowsThatAreOff(ctx, io)
    assertStore(ctx, io)
    failures.begin(ctx)
    const again = againCommand(prompt, args, io.command)
    return await work({ ctx, prompt, schema, last, options, stop, io, again })
  } catch (error) {
    throw withPrompt(withFix(error, io), prompt, args, io.command)
  }
}
