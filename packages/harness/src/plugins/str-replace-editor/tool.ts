import { isAbsolute, resolve } from 'node:path'
import { defineTool, ToolArgsError } from '../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { announcer, FsError, missingText } from '../fs/index.ts'
import type { FsInfo, FsTarget } from '../fs/index.ts'
import { viewFile, viewFolder } from './view.ts'

export interface EditorConfig {
  /** Of a view; what is more is cut off. */
  readonly maxOutputChars: number
  readonly description: string
}

export const defaultDescription =
  'View files and folders, create files, and edit by replacing a text that is unique in the file or inserting after a line.'

interface EditorArguments {
  readonly command: 'view' | 'create' | 'str_replace' | 'insert'
  readonly path: string
  readonly file_text?: string
  readonly insert_line?: number
  readonly new_str?: string
  readonly old_str?: string
  readonly view_range?: readonly number[]
}

interface Call {
  readonly ctx: Context
  readonly config: EditorConfig
  readonly target: FsTarget
  readonly exec: ToolRunContext
}

export function editorTool(ctx: Context, config: EditorConfig): ToolDefinition {
  return defineTool({
    name: 'str_replace_editor',
    description: config.description,
    parameters: {
      command: { type: 'string', required: true, enum: ['view', 'create', 'str_replace', 'insert'] },
      path: { type: 'string', required: true, description: 'absolute' },
      file_text: { type: 'string', description: 'for create' },
      insert_line: { type: 'integer', description: 'for insert: the line before, 0 for the beginning' },
      new_str: { type: 'string', description: 'for str_replace and insert' },
      old_str: { type: 'string', description: 'for str_replace' },
      view_range: {
        type: 'array',
        items: { type: 'integer' },
        description: 'for view: first and last line; -1 for the end',
      },
    },
    effects: ({ command, path }) => (command === 'view' ? [] : [{ kind: 'write', path }]),
    isConcurrencySafe: ({ command }) => command === 'view',
    presentCall: ({ command, path, old_str, new_str, file_text }) =>
      command === 'view'
        ? { card: 'read', title: path }
        : {
            card: 'diff',
            title: path,
            data: { path, oldText: old_str ?? '', newText: new_str ?? file_text ?? '' },
          },
    async execute(args, exec) {
      const { path } = args
      if (path.trim() === '') throw new ToolArgsError(['path: is blank'])
      if (!isAbsolute(path)) {
        const whole = resolve(exec.agent?.session.header.cwd ?? '/', path)
        throw new ToolArgsError([`path: "${path}" is not absolute; did you mean ${whole}?`])
      }
      const target = await ctx.fs.resolve(path, { signal: exec.signal })
      return await commands[args.command]({ ctx, config, target, exec }, args)
    },
  })
}

const commands: Record<EditorArguments['command'], (call: Call, args: EditorArguments) => Promise<string>> = {
  view,
  create,
  str_replace: replace,
  insert,
}

async function view(call: Call, { view_range: range }: EditorArguments): Promise<string> {
  const { ctx, config, target, exec } = call
  await ctx.waterfall('fs/read-intent', target, exec, async () => {})
  const info = await statOf(call)
  if (info.type === 'directory') {
    if (range !== undefined) throw new ToolArgsError(['view_range: is for files, and path is a folder'])
    return await viewFolder(ctx.fs, target, exec.signal)
  }
  const text = await ctx.fs.readText(target, exec.signal)
  const shown = viewFile(text, { path: target.displayPath, range, maxChars: config.maxOutputChars })
  ctx.veto('fs/observed', target, { kind: 'present', version: info.version }, exec)
  return shown
}

async function create({ ctx, target, exec }: Call, { file_text: content }: EditorArguments): Promise<string> {
  if (content === undefined) throw new ToolArgsError(['file_text: is missing for create'])
  const intent = { kind: 'createIfAbsent' } as const
  await ctx.waterfall('fs/write-intent', target, exec, async () => intent)
  if ((await ctx.fs.stat(target, exec.signal)) !== undefined) {
    const text = `${target.displayPath} exists; change it with str_replace or insert`
    throw new FsError('FS_NOT_OBSERVED', text)
  }
  const done = await ctx.fs.writeText(target, content, intent, exec.signal, announcer(ctx, target, exec))
  ctx.veto('fs/observed', target, { kind: 'present', version: done.version }, exec)
  return `Created file ${target.displayPath}`
}

async function replace(call: Call, { old_str: old, new_str: fresh = '' }: EditorArguments): Promise<string> {
  const { ctx, target, exec } = call
  const intent = await ctx.waterfall('fs/edit-intent', target, exec, async () => undefined)
  if (old === undefined || old === '') throw new ToolArgsError(['old_str: is missing for str_replace'])
  if (old === fresh) throw new ToolArgsError(['new_str: is the same as old_str'])
  const info = await statOf(call)
  await edit(call, { old, fresh, version: intent?.version ?? info.version })
  return `Edited ${target.displayPath}`
}

async function insert(call: Call, { insert_line: line, new_str: fresh }: EditorArguments): Promise<string> {
  const { ctx, target, exec } = call
  const intent = await ctx.waterfall('fs/edit-intent', target, exec, async () => undefined)
  if (line === undefined) throw new ToolArgsError(['insert_line: is missing for insert'])
  if (fresh === undefined) throw new ToolArgsError(['new_str: is missing for insert'])
  const info = await statOf(call)
  const version = intent?.version ?? info.version
  // The engine puts the line ends of the file around what is new.
  const old = (await ctx.fs.readText(target, exec.signal)).replace(/\r\n?/g, '\n')
  const lines = old.split('\n')
  if (line < 0 || line > lines.length)
    throw new ToolArgsError([`insert_line: must be from 0 to ${lines.length}, not ${line}`])
  const whole = [...lines.slice(0, line), fresh, ...lines.slice(line)].join('\n')
  if (old !== '') await edit(call, { old, fresh: whole, version })
  else {
    const expected = { kind: 'replaceIfVersion', version } as const
    const done = await ctx.fs.writeText(target, whole, expected, exec.signal, announcer(ctx, target, exec))
    ctx.veto('fs/observed', target, { kind: 'present', version: done.version }, exec)
  }
  return `Inserted into ${target.displayPath} after line ${line}`
}

async function edit(
  { ctx, target, exec }: Call,
  {
    old,
    fresh,
    version,
  }: { readonly old: string; readonly fresh: string; readonly version: FsInfo['version'] },
): Promise<void> {
  const edits = [{ oldString: old, newString: fresh, replaceAll: false }]
  const done = await ctx.fs.editText(target, edits, { version }, exec.signal, announcer(ctx, target, exec))
  ctx.veto('fs/observed', target, { kind: 'present', version: done.version }, exec)
}

async function statOf({ ctx, target, exec }: Call): Promise<FsInfo> {
  const { signal } = exec
  const info = await ctx.fs.stat(target, signal)
  if (info !== undefined) return info
  ctx.veto('fs/observed', target, { kind: 'absent' }, exec)
  throw new FsError('FS_NOT_FOUND', await missingText(ctx.fs, target, { signal }))
}
