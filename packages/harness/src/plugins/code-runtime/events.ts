import type { CallId, ContentBlock, JsonValue } from '@dsh/protocol'
import { array, boolean, looseObject, minLength, object, string, unknown } from 'zod/mini'

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** A program began a call of a tool. */
    'tool/code-dispatch-start': {
      /** The call that runs the program. */
      readonly callId: CallId
      /** `<callId>:code:<n>`, n from 1 in the order in which the program asked. */
      readonly subCallId: CallId
      readonly name: string
      /** As they were given; where they are very long, their text cut short. */
      readonly arguments: JsonValue
    }
    /** The call is over; there is exactly one for each start, unless a crash came between. */
    'tool/code-dispatch': {
      readonly callId: CallId
      readonly subCallId: CallId
      readonly name: string
      /** What the call gave as a model would read it; texts that are very long are cut short. */
      readonly content: readonly ContentBlock[]
      readonly isError: boolean
    }
  }
}

/** Fields that a later version adds are tolerated. */
export const dispatchEventSchemas = () => {
  const text = string().check(minLength(1))
  const call = { callId: text, subCallId: text, name: string() }
  return {
    'tool/code-dispatch-start': object({ ...call, arguments: unknown() }),
    'tool/code-dispatch': object({
      ...call,
      content: array(looseObject({ type: text })),
      isError: boolean(),
    }),
  }
}
