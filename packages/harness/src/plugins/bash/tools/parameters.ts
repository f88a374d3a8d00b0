import type { PropertyMap } from '../../../core/tools/index.ts'
import { widerAccesses } from '../../../core/tools/index.ts'

const background = {
  run_in_background: { type: 'boolean', description: 'for servers and long work; no timeout' },
} as const

const escalation = {
  sandbox_permissions: {
    type: 'string',
    enum: widerAccesses,
    description: 'only after a denial; the narrowest',
  },
  justification: { type: 'string', description: 'why, for the user; goes with sandbox_permissions' },
} as const

const always = (timeoutMs: number) =>
  ({
    command: { type: 'string', required: true },
    description: { type: 'string', required: true, description: 'what it does, in 5-10 words' },
    timeoutMs: { type: 'number', description: `default ${timeoutMs}` },
    workdir: { type: 'string', description: 'default: the working folder' },
  }) as const satisfies PropertyMap

type BashParameters = ReturnType<typeof always> & typeof background & typeof escalation

/** What is offered where, by what a composition can do. */
export interface BashOffer {
  readonly timeoutMs: number
  readonly background: boolean
  readonly escalation: boolean
}

/** Typed as all there is: what is not offered may come all the same, and is then looked at where it would count. */
export function bashParameters(offer: BashOffer): BashParameters {
  return {
    ...always(offer.timeoutMs),
    ...(offer.background && background),
    ...(offer.escalation && escalation),
  } as BashParameters
}

const outputFacts = {
  type: 'object',
  required: true,
  additionalProperties: false,
  properties: {
    bytes: { type: 'integer', required: true },
    omittedBytes: { type: 'integer', required: true },
    artifact: { type: 'string' },
  },
} as const

export const bashOutput = {
  stdout: { type: 'string', required: true },
  stderr: { type: 'string', required: true },
  exitCode: { oneOf: [{ type: 'integer' }, { type: 'null' }], required: true },
  signal: { oneOf: [{ type: 'string' }, { type: 'null' }], required: true },
  timedOut: { type: 'boolean', required: true },
  timeoutMs: { type: 'number', required: true },
  durationMs: { type: 'integer', required: true },
  shell: { type: 'string', enum: ['bash', 'sh'], required: true },
  survivors: {
    type: 'array',
    required: true,
    items: {
      type: 'object',
      additionalProperties: false,
      properties: {
        pid: { type: 'integer', required: true },
        startTime: { type: 'string', required: true },
        command: { type: 'string', required: true },
      },
    },
  },
  outputs: {
    type: 'object',
    required: true,
    additionalProperties: false,
    properties: { stdout: outputFacts, stderr: outputFacts },
  },
  sandbox: {
    type: 'object',
    additionalProperties: false,
    properties: {
      mode: { type: 'string', required: true },
      network: { type: 'boolean', required: true },
      enforcement: { type: 'string', required: true },
      denied: { type: 'boolean', required: true },
      access: { type: 'string', enum: ['files', 'network', 'held-names'] },
      reason: { type: 'string' },
    },
  },
  /** The task that goes on with the command, and whether it was moved there. */
  task: {
    type: 'object',
    additionalProperties: false,
    properties: { id: { type: 'string', required: true }, moved: { type: 'boolean', required: true } },
  },
} as const satisfies PropertyMap
