import { createRequire } from 'node:module'

interface Visitor {
  visitStatement(statement: { readonly type: string; readonly decls?: unknown }): unknown
  visitVariableDeclarators(declarators: unknown): unknown
}

/**
 * Lets dependency-cruiser read files with `using` declarations: the walker it borrows from swc knows the syntax tree of
 * an older language and throws at them. They are walked as the variable declarations they are.
 */
export function visitUsingDeclarations(): void {
  const require = createRequire(import.meta.url)
  const walker = require('@swc/core/Visitor.js') as { readonly Visitor?: { readonly prototype: Visitor } }
  const prototype = walker.Visitor?.prototype
  if (prototype === undefined) throw new Error('@swc/core/Visitor.js has no Visitor any more')
  const { visitStatement } = prototype
  prototype.visitStatement = function (this: Visitor, statement) {
    if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement)
    this.visitVariableDeclarators(statement.decls)
    return statement
  }
}
