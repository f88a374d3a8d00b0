import type { JsonValue } from '@dsh/protocol'
import { codeToolName, defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import { HarnessError } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { CodeLanguage, CodeNamespace, CodeResult, CodeRun } from '../service.ts'
import { callableTools } from './callable.ts'
import { renderFailure, renderProgram } from './render.ts'
import { SubCalls } from './sub-calls.ts'

const errorClassName = 'ToolCallError'
const errorMember = 'toolName'

const descriptions: Record<CodeLanguage, string> = {
  typescript:
    'Run a TypeScript program that calls tools as `await tools.NAME({...})`. It is the body of an async function; what it prints and returns is the result.',
  python:
    'Run a Python program that calls tools as `await tools.NAME(key=value)`. It is the body of an async function; what it prints and returns is the result.',
}

/** The tool run_code over whatever provides `ctx.codeRuntime`. */
export function runCode(ctx: Context, options: { readonly maxParallelSubCalls: number }): ToolDefinition {
  const { language } = ctx.codeRuntime
  return defineTool({
    name: codeToolName,
    description: descriptions[language],
    parameters: {
      code: { type: 'string', required: true },
      description: { type: 'string', required: true, description: 'what it does, in 5-10 words' },
    },
    output: 'content',
    effects: ({ code: program }) => [{ kind: 'program', language, program }],
    presentCall: ({ code, description: title }) => ({ card: 'generic', title, data: { code, language } }),
    async execute({ code: program }, exec) {
      const calls = new SubCalls(ctx, exec, { maxParallel: options.maxParallelSubCalls })
      const { agent, token, signal } = exec
      const policy = await ctx.get('sandboxPolicy')?.resolve({ session: agent?.session, token })
      const bindings = [toolsFor(ctx, exec, calls)]
      const result = await run(ctx, calls, { program, bindings, signal, ...(policy && { policy }) })
      signal.throwIfAborted()
      if (result.error !== undefined)
        throw new HarnessError('CODE_RUN_FAILED', renderFailure(result, calls.calls))
      return [{ type: 'text', text: renderProgram(result, calls.calls) }, ...calls.attachments()]
    },
  })
}

async function run(ctx: Context, calls: SubCalls, spec: CodeRun): Promise<CodeResult> {
  try {
    return await ctx.codeRuntime.run(spec)
  } finally {
    await calls.settle()
  }
}

function toolsFor(ctx: Context, { agent }: ToolRunContext, calls: SubCalls): CodeNamespace {
  const functions = Object.fromEntries(
    callableTools(ctx, agent).map(({ name }) => [name, (args: JsonValue) => calls.call(name, args)]),
  )
  return {
    global: 'tools',
    functions,
    errorClass: { name: errorClassName, memberNameProperty: errorMember },
  }
}
