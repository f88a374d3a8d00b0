import { sep } from 'node:path'

/** Whether `path` is `folder` or lies below it. Both are absolute and without `.` and `..`; they may end in a slash. */
export function isWithin(folder: string, path: string): boolean {
  return (path + sep).startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
