import { array, check, gte, int, _default, minLength, prefault, strictObject, string } from 'zod/mini'
import type { input, output } from 'zod/mini'
import type {} from '../approval/index.ts'
import type { PluginObject } from '../../kernel/index.ts'
import { AgentGuard } from './guard.ts'
import type { GuardConfig } from './guard.ts'
import type { Agent } from '../../core/agent/index.ts'

const schema = () =>
  prefault(
    strictObject({
      /** How often the same may happen in a row: told, told in detail, and at the last one the turn ends. */
      thresholds: _default(
        array(int().check(gte(2))).check(
          minLength(1),
          check(({ value, issues }) => {
            if (value.some((each, at) => at > 0 && each <= (value[at - 1] ?? 0)))
              issues.push({ code: 'custom', input: value, message: 'the thresholds do not rise' })
          }),
        ),
        [3, 5, 8],
      ),
      /** Tools that are meant to be called again and again; `*` stands for any text. */
      exclude: _default(array(string()), ['task_output', 'task_list', 'terminal_read', 'terminal_list']),
    }),
    {},
  )

/**
 * Watches each agent for going in circles: the same call, up to four calls in turns, the same error from one tool, or
 * answers without a call. It tells the model, and in the end asks whoever can answer, or ends the turn. What a person
 * says begins a new count.
 */
export const repeatToolGuard: PluginObject<
  input<ReturnType<typeof schema>>,
  output<ReturnType<typeof schema>>
> = {
  name: 'repeat-tool-guard',
  inject: { required: ['tools'], optional: ['approval'] },
  get Config() {
    return schema()
  },
  apply(ctx, { thresholds, exclude }) {
    const config: GuardConfig = { thresholds, isWatched: watchedBy(exclude) }
    const guards = new WeakMap<Agent, AgentGuard>()
    const guardOf = (agent: Agent): AgentGuard => {
      const known = guards.get(agent)
      if (known !== undefined) return known
      const guard = new AgentGuard(agent, config)
      guards.set(agent, guard)
      return guard
    }
    ctx.on(
      'tools/pre-execute',
      async (exec, next) => {
        const { agent, parent } = exec
        if (agent === undefined || parent !== undefined) return next()
        const canAsk = (): boolean => ctx.get('approval')?.canAnswer(agent) === true
        const own = guardOf(agent).judge(exec, canAsk)
        const decision = await next()
        return own !== undefined && decision.kind === 'allow' ? own : decision
      },
      // Calls that others refuse count too.
      { prepend: true },
    )
    ctx.on('tools/execute', (exec, next) => {
      if (exec.agent !== undefined && exec.parent === undefined) guardOf(exec.agent).began(exec)
      return next()
    })
    ctx.on('tools/result', (exec, result) => {
      if (exec.agent !== undefined && exec.parent === undefined) guardOf(exec.agent).ended(exec, result)
    })
    ctx.on('agent/pre-step', async ({ agent, messages, step }, next) => {
      const notice = guardOf(agent).beforeStep(messages, step)
      const decision = await next()
      if (notice === undefined || decision.kind === 'reject') return decision
      return { ...decision, messages: [...decision.messages, notice] }
    })
  },
}

function watchedBy(exclude: readonly string[]): (name: string) => boolean {
  const patterns = exclude.map(pattern => {
    const parts = pattern.split('*').map(part => part.replaceAll(/[^\w-]/g, String.raw`\$&`))
    return new RegExp(`^${parts.join('.*')}$`)
  })
  return name => !patterns.some(pattern => pattern.test(name))
}
