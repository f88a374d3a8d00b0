/** Runs one dsh command and resolves with its exit code. */
export async function main(argv: string[]): Promise<number> {
  if (argv[0] === '--version') {
    process.stdout.write('dsh 0.1.0\n')
    return 0
  }
  process.stderr.write('usage: dsh --version\n')
  return 2
}
