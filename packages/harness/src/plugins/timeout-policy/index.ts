import { gte, int, lte, _default, prefault, strictObject } from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { PluginObject } from '../../kernel/index.ts'
import { LeakError, withDeadline } from './deadline.ts'

const schema = () =>
  prefault(
    strictObject({
      /** How long a body may take to stop once it is told to; then it is left behind. */
      graceMs: _default(int().check(gte(0), lte(MAX_TIMER_DELAY_MS)), 10_000),
    }),
    {},
  )

/**
 * Ends calls that take longer than their tool says (`timeoutMs`), and turns that wait for a body which does not hear of
 * its signal: such a body is left behind, and reported.
 */
export const timeoutPolicy: PluginObject<
  input<ReturnType<typeof schema>>,
  output<ReturnType<typeof schema>>
> = {
  name: 'timeout-policy',
  inject: ['tools'],
  get Config() {
    return schema()
  },
  apply(ctx, { graceMs }) {
    ctx.on('tools/execute', (exec, next) =>
      withDeadline(exec, next, {
        timeoutMs: ctx.tools.get(exec.name, exec.agent ?? null)?.timeoutMs,
        graceMs,
        leaked: () => ctx.fiber.report(new LeakError(exec.name, graceMs), `call of tool ${exec.name}`),
      }),
    )
  },
}
