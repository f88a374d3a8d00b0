import { parseSync } from '@swc/core'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** One exported thing, as far as its text tells: what it has, and what it extends. */
export interface Declaration {
  readonly isType: boolean
  readonly members: ReadonlySet<string>
  readonly bases: readonly string[]
}

export interface ImportOf {
  readonly from: string
  readonly isType: boolean
}

/** One interface that others may merge into, as one file has it. */
export interface InterfacePart {
  readonly name: string
  /** The member's name, and the name of its type. */
  readonly members: ReadonlyMap<string, string>
}

export interface SourceFile {
  readonly text: string
  /** What the file itself exports. */
  readonly declarations: ReadonlyMap<string, Declaration>
  /** Names passed on from other files, by the name they get here. */
  readonly passedOn: ReadonlySet<string>
  /** Files of which everything is passed on. */
  readonly wholes: readonly string[]
  readonly imports: readonly ImportOf[]
  /** Interfaces at the top level and in `declare module`. */
  readonly interfaces: readonly InterfacePart[]
  /** Service keys in any `inject`. */
  readonly injects: ReadonlySet<string>
  /** Service keys it provides. */
  readonly provides: ReadonlySet<string>
}

/** All sources of the harness and the protocol, without tests, by path from the root of the repository. */
export type SourceTree = ReadonlyMap<string, SourceFile>

export function readSourceTree(root: string): SourceTree {
  const paths = globSync('packages/{harness,protocol}/src/**/*.ts', { cwd: root })
  const sources = paths.filter(path => !path.endsWith('.test.ts')).sort()
  return new Map(sources.map(path => [path, readSource(readFileSync(posix.join(root, path), 'utf8'), path)]))
}

/** Reads one file; its imports are given as paths where they are relative. */
export function readSource(text: string, path: string): SourceFile {
  const module = parseSync(text, { syntax: 'typescript', target: 'es2024' }) as unknown as Node
  const items = nodesOf(module['body'])
  const all = [...walk(module)]
  const resolve = (from: string): string =>
    from.startsWith('.') ? posix.join(posix.dirname(path), from) : from
  return {
    text,
    declarations: new Map(items.flatMap(declarationsIn)),
    passedOn: new Set(items.flatMap(passedOnIn)),
    wholes: items
      .filter(({ type }) => type === 'ExportAllDeclaration')
      .map(item => resolve(textOf(item['source']))),
    imports: items
      .filter(({ type, source }) => type === 'ImportDeclaration' || isNode(source))
      .map(item => ({
        from: resolve(textOf(item['source'])),
        isType: item['typeOnly'] === true,
      })),
    interfaces: all.filter(({ type }) => type === 'TsInterfaceDeclaration').map(interfacePart),
    injects: new Set(all.filter(isInject).flatMap(({ value }) => [...stringsIn(value)])),
    provides: new Set(all.flatMap(providedBy)),
  }
}

/** Everything that importing `path` gives, types too. */
export function exportsOf(tree: SourceTree, path: string): Set<string> {
  const file = tree.get(path)
  if (file === undefined) return new Set()
  const inherited = file.wholes.flatMap(whole => [...exportsOf(tree, whole)])
  return new Set([...file.declarations.keys(), ...file.passedOn, ...inherited])
}

/** The members of all parts of a mergeable interface, with the name of their type and the file. */
export function membersOf(
  tree: SourceTree,
  name: string,
): Map<string, { readonly type: string; readonly path: string }> {
  const members = new Map<string, { readonly type: string; readonly path: string }>()
  for (const [path, { interfaces }] of tree) {
    for (const part of interfaces) {
      if (part.name !== name) continue
      for (const [key, type] of part.members) members.set(key, { type, path })
    }
  }
  return members
}

/** Whether `owner`, as `path` declares it, has the member, itself or by what it extends. */
export function hasMember(tree: SourceTree, path: string, owner: string, member: string): boolean {
  const declaration = tree.get(path)?.declarations.get(owner)
  if (declaration === undefined) return false
  if (declaration.members.has(member)) return true
  return declaration.bases.some(base =>
    [...tree].some(
      ([other, { declarations }]) => declarations.has(base) && hasMember(tree, other, base, member),
    ),
  )
}

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string'
}

function nodesOf(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : []
}

/** The node and everything below it. */
function* walk(value: unknown): Iterable<Node> {
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (isNode(next)) yield next
    if (typeof next === 'object' && next !== null) waiting.push(...Object.values(next))
  }
}

/** The name or text of an identifier or string. */
function textOf(value: unknown): string {
  return isNode(value) && typeof value['value'] === 'string' ? value['value'] : ''
}

function* stringsIn(value: unknown): Iterable<string> {
  for (const node of walk(value)) if (node.type === 'StringLiteral') yield textOf(node)
}

function declarationsIn({ type, declaration }: Node): [string, Declaration][] {
  if (type !== 'ExportDeclaration' || !isNode(declaration)) return []
  if (declaration.type === 'VariableDeclaration') {
    return nodesOf(declaration['declarations']).map(({ id }) => [textOf(id), valueWith([])])
  }
  const { id, identifier, body } = declaration
  const name = textOf(id ?? identifier)
  switch (declaration.type) {
    case 'ClassDeclaration':
      return [[name, valueWith(publicMembers(body), namesIn(declaration['superClass']))]]
    case 'TsInterfaceDeclaration':
      return [[name, typeWith(keysOf(nodesOf((body as Node)['body'])), namesIn(declaration['extends']))]]
    case 'TsTypeAliasDeclaration':
      return [[name, typeWith(keysOf([...walk(declaration['typeAnnotation'])]))]]
    default:
      return [[name, valueWith([])]]
  }
}

function valueWith(members: readonly string[], bases: readonly string[] = []): Declaration {
  return { isType: false, members: new Set(members), bases }
}

function typeWith(members: readonly string[], bases: readonly string[] = []): Declaration {
  return { isType: true, members: new Set(members), bases }
}

function publicMembers(body: unknown): string[] {
  return nodesOf(body)
    .filter(({ accessibility }) => accessibility !== 'private')
    .flatMap(({ type, key }) => (type.startsWith('Private') ? [] : textOf(key) || []))
}

function keysOf(members: readonly Node[]): string[] {
  return members.flatMap(({ type, key }) => (/^Ts(Property|Method|Getter)/.test(type) ? textOf(key) : []))
}

function namesIn(value: unknown): string[] {
  return [...walk(value)].filter(({ type }) => type === 'Identifier').map(textOf)
}

function passedOnIn({ type, specifiers }: Node): string[] {
  if (type !== 'ExportNamedDeclaration') return []
  return nodesOf(specifiers).map(({ exported, orig }) => textOf(exported) || textOf(orig))
}

function interfacePart({ id, body }: Node): InterfacePart {
  const members = nodesOf((body as Node)['body']).map(
    ({ key, typeAnnotation }) => [textOf(key), typeName(typeAnnotation)] as const,
  )
  return { name: textOf(id), members: new Map(members) }
}

/** `Emit` of `Emit<[…]>`; empty where the type has no name. */
function typeName(annotation: unknown): string {
  const type = isNode(annotation) ? annotation['typeAnnotation'] : undefined
  return isNode(type) ? textOf(type['typeName']) : ''
}

function isInject({ type, key }: Node): boolean {
  return (type === 'KeyValueProperty' || type === 'ClassProperty') && textOf(key) === 'inject'
}

/** The key in `ctx.provide(key, …)`, or in `super(ctx, key)` of a service. */
function providedBy({ type, callee, arguments: given }: Node): string[] {
  if (type !== 'CallExpression' || !isNode(callee) || !Array.isArray(given)) return []
  const [first, second] = given.map(argument => (argument as { readonly expression: unknown }).expression)
  if (callee.type === 'Super' && textOf(first) === 'ctx') return isText(second) ? [textOf(second)] : []
  const isProvide = callee.type === 'MemberExpression' && textOf(callee['property']) === 'provide'
  return isProvide && isText(first) ? [textOf(first)] : []
}

function isText(value: unknown): boolean {
  return isNode(value) && value.type === 'StringLiteral'
}
