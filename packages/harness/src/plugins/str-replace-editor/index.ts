import { _default, int, minLength, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { defaultDescription, editorTool } from './tool.ts'
import type { EditorConfig } from './tool.ts'

export type StrReplaceEditorConfig = EditorConfig

const schema = () =>
  prefault(
    strictObject({
      maxOutputChars: _default(int().check(positive()), 16_000),
      description: _default(string().check(minLength(1)), defaultDescription),
    }),
    {},
  )

/**
 * The tool str_replace_editor, for models that were trained on it, over the same files, policies and edit engine as read,
 * write and edit. It is offered beside these once a composition names it.
 */
export const strReplaceEditor: PluginObject<input<ReturnType<typeof schema>>, StrReplaceEditorConfig> = {
  name: 'str-replace-editor',
  inject: ['fs', 'tools'],
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: StrReplaceEditorConfig) {
    ctx.tools.register(editorTool(ctx, config))
  },
}
