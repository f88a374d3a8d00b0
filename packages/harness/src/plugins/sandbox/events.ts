/** What tools may do: look, change files of the workspace, or anything. */
export const sandboxModes = ['read-only', 'workspace-write', 'full-access'] as const
export type SandboxMode = (typeof sandboxModes)[number]
