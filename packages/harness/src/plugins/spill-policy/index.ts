import { array, gte, int, _default, prefault, strictObject, string } from 'zod/mini'
import type { input, output } from 'zod/mini'
import type { PluginObject } from '../../kernel/index.ts'
import { spilled } from './spill.ts'

const schema = () =>
  prefault(
    strictObject({
      /** What a result may be long, in bytes of UTF-8. */
      maxInlineBytes: _default(int().check(gte(1)), 50_000),
      /** Tools that bound their own results. */
      exclude: _default(array(string()), ['read', 'bash']),
    }),
    {},
  )

/**
 * Keeps long results out of the request: the whole text goes to the artifacts of the session, and the model reads both
 * ends of it and where the rest is. Where that fails the result stays as it is.
 */
export const spillPolicy: PluginObject<
  input<ReturnType<typeof schema>>,
  output<ReturnType<typeof schema>>
> = {
  name: 'spill-policy',
  inject: ['tools'],
  get Config() {
    return schema()
  },
  apply(ctx, { maxInlineBytes, exclude }) {
    ctx.on(
      'tools/post-execute',
      async (exec, result, next) => {
        const decision = await next()
        const { session } = exec.agent ?? {}
        if (session === undefined || exec.parent !== undefined || exclude.includes(exec.name)) return decision
        if (decision.kind !== 'accept' || decision.value !== undefined) return decision
        try {
          const content = await spilled(decision.content ?? result.content, maxInlineBytes, session.artifacts)
          return content === undefined ? decision : { ...decision, content }
        } catch (error) {
          ctx.fiber.report(error, `result of tool ${exec.name}`)
          return decision
        }
      },
      // The others have to be through: what they add is part of what is too long.
      { prepend: true },
    )
  },
}
