export function ownPid(): number {
  return process.pid
}

/** False where it is not certain, and for what names no process. */
export function isDead(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
