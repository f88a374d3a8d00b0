import { adopt } from '../../kernel/index.ts'
import { compileCheck } from './check.ts'
import type { Check } from './check.ts'
import type { Checked, Contract } from './contract.ts'
import { JsonSchemaError } from './errors.ts'
import { compileForeign } from './foreign.ts'
import { isRecord, toJsonSchema } from './schema.ts'
import type { JsonRecord } from './schema.ts'
import { toParameters } from './spec.ts'
import { isStandard, standardContract } from './standard.ts'

/**
 * Reads `parameters`: a zod object, a JSON Schema (its `type` is the string "object"), or else a map of properties.
 * Throws a JsonSchemaError for a map that says what cannot be enforced.
 */
export function toParametersContract(parameters: unknown, name: string): Contract {
  if (isStandard(parameters)) return standardContract(parameters, { name, io: 'input' })
  if (isRecord(parameters) && parameters['type'] === 'object') return foreignContract(parameters, name)
  const schema = toParameters(parameters, name)
  return { schema, check: byCheck(compileCheck(schema)) }
}

/** The same for results, where a JSON Schema may be of any type and stays inside the enforced subset. */
export function toOutputContract(schema: unknown, name: string): Contract {
  if (isStandard(schema)) return standardContract(schema, { name, io: 'output' })
  const isMap = isRecord(schema) && Object.values(schema).every(isRecord) && Object.keys(schema).length > 0
  const json = isMap ? toParameters(schema, name) : toJsonSchema(schema, name)
  return { schema: json, check: byCheck(compileCheck(json)) }
}

/** A schema of others, sent as it is. What our own check can read, it checks. */
function foreignContract(parameters: JsonRecord, name: string): Contract {
  const schema = adopt(parameters, name)
  const { $schema: _, ...plain } = schema
  try {
    return { schema, check: byCheck(compileCheck(toJsonSchema(plain, name))) }
  } catch (error) {
    if (!(error instanceof JsonSchemaError)) throw error
  }
  const check = compileForeign(schema)
  return {
    schema,
    check: (value, root) => {
      const violations = check(value, root)
      return violations instanceof Promise
        ? violations.then(found => toChecked(value, found))
        : toChecked(value, violations)
    },
  }
}

function byCheck(check: Check): Contract['check'] {
  return (value, root) => toChecked(value, check(value, root))
}

function toChecked(value: unknown, violations: readonly string[]): Checked {
  return violations.length === 0 ? { value } : { violations }
}
