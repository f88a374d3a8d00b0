/** Why nothing confines here, and what to do. For people. */
export function missingReason(program: 'bubblewrap' | 'sandbox-exec'): string {
  return program === 'bubblewrap'
    ? 'bubblewrap is not installed; install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap)'
    : '/usr/bin/sandbox-exec is missing'
}

export function systemReason(platform: string): string {
  return platform === 'win32'
    ? 'no sandbox exists for Windows; run in WSL 2'
    : `no sandbox exists for ${platform}; run in a virtual machine with Linux`
}

const byRefusal: readonly (readonly [sign: RegExp, advice: string])[] = [
  [
    /mount proc/i,
    'the container shows its own /proc only in part; start it with --security-opt systempaths=unconfined',
  ],
  [
    /namespace|uid map|operation not permitted|permission denied|no space left/i,
    'user namespaces are forbidden; as root: sysctl -w kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined',
  ],
]

/** `refusal` is what bubblewrap said. */
export function refusedReason(refusal: string): string {
  const advice = byRefusal.find(([sign]) => sign.test(refusal))?.[1] ?? 'run it by hand to see why'
  return `bubblewrap fails with "${refusal}": ${advice}`
}
