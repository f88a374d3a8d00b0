import { cutText } from '@dsh/harness/tools'
import type { Validator } from '@cfworker/json-schema'
import { draftOf, problemOf, readSchema } from './schema-file.ts'

/** What `--schema` asks of the answer. */
export interface AnswerSchema {
  /** Tells the model before its first turn. */
  readonly instructions: string
  /** The JSON text of an answer that fits, or why it does not. */
  check(answer: string): { readonly json: string } | { readonly problems: string }
}

const maxProblems = 10
const maxProblemBytes = 2000

/** Throws a usage error for a file that holds no JSON Schema. */
export async function loadSchema(path: string, signal: AbortSignal): Promise<AnswerSchema> {
  const schema = await readSchema(path, signal)
  const { Validator } = await import('@cfworker/json-schema')
  const validator = new Validator(structuredClone(schema), draftOf(schema), false)
  return {
    instructions: instructionsFor(JSON.stringify(schema)),
    check: answer => checkAnswer(answer, validator),
  }
}

function instructionsFor(schema: string): string {
  return `End with an answer that is JSON alone, without a code fence or other words. It must fit this JSON Schema:\n${schema}`
}

export function correctionFor(problems: string): string {
  return `The answer does not fit the JSON Schema:\n${problems}\nAnswer again, with the JSON alone.`
}

function checkAnswer(answer: string, validator: Validator): { json: string } | { problems: string } {
  const json = unfenced(answer)
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    return { problems: `- it is not JSON: ${(cause as Error).message}` }
  }
  const lines = linesOfProblems(value, validator)
  return lines.length === 0 ? { json } : { problems: cutText(lines.join('\n'), maxProblemBytes) }
}

function linesOfProblems(value: unknown, validator: Validator): string[] {
  try {
    const { errors } = validator.validate(value)
    return errors
      .slice(0, maxProblems)
      .map(({ instanceLocation, error }) => `- ${instanceLocation}: ${error}`)
  } catch (cause) {
    return [`- it cannot be checked: ${problemOf(cause)}`]
  }
}

/** The inside of an answer that is one code fence, else the answer. */
function unfenced(answer: string): string {
  const text = answer.trim()
  return /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1]?.trim() ?? text
}
