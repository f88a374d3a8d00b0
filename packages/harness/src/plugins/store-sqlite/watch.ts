import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { memoryPath } from './place.ts'

/** Tells of every write to the database, or to the log that SQLite writes ahead of it, by whatever program. */
export function watchDatabase(path: string, onChange: () => void): () => void {
  if (path === memoryPath) return () => {}
  const names = [basename(path), `${basename(path)}-wal`]
  try {
    const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
      if (name === null || names.includes(name)) onChange()
    })
    // A folder that goes away has nothing more to tell.
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => {}
  }
}
