/** More than its session's mode gives, asked for by one call; the widest last. */
export const widerAccesses = ['workspace-write', 'network', 'full-access'] as const
/** `network` is workspace-write with the network of the machine. */
export type WiderAccess = (typeof widerAccesses)[number]

/**
 * What a call would do to the world, as permission rules judge it before it runs.
 *
 * `foreign` is a deed that nobody here can look into, such as a call to a server that a project brings along. `program`
 * is a program for `ctx.codeRuntime`: where the sandbox is ready it can do nothing but compute and call tools, each of
 * which is judged by itself; where there is none it is as a command that nobody can look into.
 */
export type ToolEffect =
  | { readonly kind: 'write'; readonly path: string }
  | {
      readonly kind: 'command'
      readonly command: string
      /** As the model gave it: relative to the session's folder. */
      readonly workdir?: string
      /** Typed into a shell that earlier calls have changed: its folder is not known, and its words may mean other things. */
      readonly isTyped?: true
      readonly wants?: { readonly access: WiderAccess; readonly justification: string }
    }
  | { readonly kind: 'fetch'; readonly url: string }
  | { readonly kind: 'foreign'; readonly what: string }
  | { readonly kind: 'program'; readonly language: string; readonly program: string }
