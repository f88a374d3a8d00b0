import { codeToolName } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PromptText } from '../../../core/prompt/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { CodeLanguage } from '../service.ts'
import { callableTools } from './callable.ts'
import { pythonSignature } from './python-signature.ts'
import { typescriptSignature } from './typescript-signature.ts'

const introductions: Record<CodeLanguage, string> = {
  typescript: `${codeToolName} runs TypeScript without files, processes and network of its own: everything goes through \`tools\`. Each call gives a promise; independent ones go into one Promise.all. A call that fails throws ToolCallError {toolName, message}. Types are erased: no enums, no namespaces. Print or return what you want to see; the values of calls are not shown otherwise. The calls:`,
  python: `${codeToolName} runs Python without files to write, processes and network of its own: everything goes through \`tools\`. Each call is awaited; independent ones go into one asyncio.gather. A call that fails raises ToolCallError with toolName. Print or return what you want to see; the values of calls are not shown otherwise. The calls:`,
}

/** What a program can call, for as long as programs are offered: generated from the tools that are there. */
export function sdkSection(ctx: Context): PromptText {
  const { language } = ctx.codeRuntime
  const write = language === 'python' ? pythonSignature : typescriptSignature
  const written = new WeakMap<ToolDefinition, string>()
  const signatureOf = (tool: ToolDefinition): string => {
    const signature = written.get(tool) ?? write(tool)
    written.set(tool, signature)
    return signature
  }
  return ({ scope, offeredTools }) => {
    if (!ctx.tools.schemas(scope ?? null).some(({ name }) => name === codeToolName)) return ''
    const isShown = ({ name, deferred }: ToolDefinition): boolean =>
      deferred !== true || offeredTools?.has(name) === true
    const signatures = callableTools(ctx, scope).filter(isShown).map(signatureOf)
    return [introductions[language], ...signatures].join('\n')
  }
}
