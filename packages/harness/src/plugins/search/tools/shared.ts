/** Enforced by whoever guards the time of tools. */
export const searchTimeoutMs = 30_000

export const ignoredSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    paths: { type: 'array', items: { type: 'string' }, required: true },
    isMore: { type: 'boolean', required: true },
  },
} as const
