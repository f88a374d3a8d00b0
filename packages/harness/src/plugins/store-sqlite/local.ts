/** Whose files are safe; undefined on Windows, where the rights of files are not in their modes. */
export function currentUser(): number | undefined {
  return process.getuid?.()
}

/** Windows cannot open folders; there the names are as durable as its file system makes them. */
export const canSyncFolders = process.platform !== 'win32'
