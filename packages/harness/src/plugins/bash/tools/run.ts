import { ToolArgsError } from '../../../core/tools/index.ts'
import type { ResultOf, ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { Task, TaskRegistry } from '../../tasks/index.ts'
import { workOf } from '../background.ts'
import { BashError } from '../errors.ts'
import type { BashProcess, BashResult, BashSpec } from '../service.ts'
import type { LeftRunning } from './left-running.ts'
import type { bashOutput } from './parameters.ts'
import { show } from './show.ts'
import { specOf } from './spec.ts'
import type { BashArguments } from './spec.ts'

export type BashValue = ResultOf<typeof bashOutput>

interface RunPlace {
  readonly maxOutputBytes: number
  readonly left: LeftRunning
}

/** Runs one call to its end, or for as long as it is in the foreground. */
export async function runCall(
  ctx: Context,
  place: RunPlace,
  args: BashArguments,
  exec: ToolRunContext,
): Promise<BashValue> {
  const spec = await specOf(ctx, args, exec)
  if (args.run_in_background === true) return await startTask(ctx, spec, args, exec)
  const process = await ctx.bash.start(spec)
  const outcome = await untilMoved(ctx.get('tasks'), process, args, exec)
  // What a cancelled command printed is nobody's.
  exec.signal.throwIfAborted()
  const { agent } = exec
  if ('id' in outcome) return await movedValue(ctx, { process, task: outcome, spec }, place, exec)
  if (outcome.survivors.length > 0 && agent !== undefined) place.left.add(agent, process)
  return await endedValue(outcome, place, exec)
}

async function startTask(
  ctx: Context,
  spec: BashSpec,
  { description, timeoutMs }: BashArguments,
  { agent: owner, callId, signal }: ToolRunContext,
): Promise<BashValue> {
  const tasks = ctx.get('tasks')
  if (tasks === undefined || owner === undefined)
    throw new BashError('BACKGROUND_UNAVAILABLE', 'nothing here runs commands in the background')
  if (timeoutMs !== undefined) throw new ToolArgsError(['timeoutMs: does not go with run_in_background'])
  const run = async () => {
    signal.throwIfAborted()
    const process = await ctx.bash.start(spec)
    process.detach()
    return workOf(process)
  }
  const { id } = await tasks.start({ kind: 'bash', label: labelOf(spec, description), owner, callId, run })
  return { ...nothingYet(spec), task: { id, moved: false } }
}

/** The end of the command, or the task that a person made of it meanwhile. */
async function untilMoved(
  tasks: TaskRegistry | undefined,
  process: BashProcess,
  { command, description }: BashArguments,
  { agent: owner, callId }: ToolRunContext,
): Promise<BashResult | Task> {
  if (tasks === undefined || owner === undefined) return process.result
  const label = labelOf({ command }, description)
  const { promise, resolve } = Promise.withResolvers<Task>()
  let moving: Promise<Task> | undefined
  const move = async (): Promise<Task> => {
    const run = () => {
      process.detach()
      return workOf(process)
    }
    moving ??= tasks.start({ kind: 'bash', label, owner, callId, run })
    const task = await moving
    resolve(task)
    return task
  }
  const stopOffering = tasks.movable({ owner, callId, move })
  try {
    const first = await Promise.race([process.result, promise])
    return 'id' in first ? first : await (moving?.catch(() => first) ?? first)
  } finally {
    stopOffering()
  }
}

async function movedValue(
  ctx: Context,
  { process, task, spec }: { readonly process: BashProcess; readonly task: Task; readonly spec: BashSpec },
  { maxOutputBytes }: RunPlace,
  exec: ToolRunContext,
): Promise<BashValue> {
  // What is shown here is not shown again as something new.
  if (exec.agent !== undefined) ctx.tasks.readNew(exec.agent, task.id)
  const [stdout, stderr] = await Promise.all([
    show(process.output.stdout, maxOutputBytes, exec),
    show(process.output.stderr, maxOutputBytes, exec),
  ])
  return {
    ...nothingYet(spec),
    stdout: stdout.text,
    stderr: stderr.text,
    outputs: { stdout: stdout.facts, stderr: stderr.facts },
    task: { id: task.id, moved: true },
  }
}

async function endedValue(
  result: BashResult,
  { maxOutputBytes }: RunPlace,
  exec: ToolRunContext,
): Promise<BashValue> {
  const [stdout, stderr] = await Promise.all([
    show(result.stdout, maxOutputBytes, exec),
    show(result.stderr, maxOutputBytes, exec),
  ])
  const { exitCode, signal, timedOut, timeoutMs, durationMs, shell, survivors, sandbox } = result
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    exitCode,
    signal,
    timedOut,
    timeoutMs,
    durationMs,
    shell,
    survivors: survivors.map(({ pid, startTime, command }) => ({ pid, startTime, command })),
    outputs: { stdout: stdout.facts, stderr: stderr.facts },
    ...(sandbox !== undefined && { sandbox }),
  }
}

function nothingYet({ timeoutMs }: BashSpec): BashValue {
  const nothing = { bytes: 0, omittedBytes: 0 }
  return {
    stdout: '',
    stderr: '',
    exitCode: null,
    signal: null,
    timedOut: false,
    timeoutMs,
    durationMs: 0,
    shell: 'bash',
    survivors: [],
    outputs: { stdout: nothing, stderr: nothing },
  }
}

function labelOf({ command }: Pick<BashSpec, 'command'>, description: string): string {
  return description.trim() === '' ? command : description
}
