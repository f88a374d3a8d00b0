export function ownPid(): number {
  return process.pid
}

/** Whether the process `pid` has ended. False where it is not certain, and for what names no process. */
export function isGone(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
