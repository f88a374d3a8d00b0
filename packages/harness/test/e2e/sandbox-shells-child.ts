import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { shareSandbox } from './shared-sandbox.ts'

// sandbox-shells-child.ts leave ARGUMENT | census: what a process does whose end, or whose counts, a test looks at.
const [, , deed, argument = ''] = process.argv

const hostile = [
  'true',
  'exit 7',
  'kill -9 $$',
  'yes | head -c 300000',
  '(trap "" TERM HUP; sleep 600) & echo left',
  'setsid sleep 600 >/dev/null 2>&1 & echo left',
  'setsid env -i sleep 600 & echo left',
  'nohup sh -c "while :; do sleep 0.1; done" & disown; echo left',
  'exec 3>/proc/self/fd/1; exec 1>&-; sleep 600 >&3 & echo',
  'for i in $(seq 20); do (sleep 600 &) ; done; echo left',
  'cat /dev/urandom | head -c 100000',
  'exec >&- 2>&-; sleep 0.01',
  'mkfifo f$$; cat f$$ & echo waits',
  'ulimit -n 10; exec 9<&-; cat <(echo in)',
  'sleep 600',
  'trap "" TERM; sleep 600; sleep 600',
  '( while :; do :; done )',
  'echo "$(yes | head -c 200000)" >&2; false',
]

/** These end the sandbox. */
const deadly = ['kill -9 -1', 'kill -STOP $PPID; sleep 600', 'kill -9 2; sleep 600']

async function leave(): Promise<void> {
  const world = await shareSandbox()
  await world.warmUp()
  await world.run(`setsid sleep ${argument} >/dev/null 2>&1 & sleep ${argument} & echo`)
  console.log(JSON.stringify({ isShared: await world.isShared(), outside: world.outside }))
  await world.run(`sleep ${argument}`, { timeoutMs: 60_000 })
}

function count() {
  const processes = fs.readdirSync('/proc').filter(name => isOwn(name)).length
  return { processes, files: fs.readdirSync('/proc/self/fd').length }
}

/** Whether a process came of this one; all do that carry its marker or are its children. */
function isOwn(pid: string): boolean {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ')[0]) === process.pid
  } catch {
    return false
  }
}

async function census(): Promise<void> {
  const world = await shareSandbox({ beginMs: 2000, graceMs: 100, commands: hostile.length })
  // A sandbox that could not be made is no matter of this count.
  const tryOut = async (command: string): Promise<void> =>
    void (await world.run(command, { timeoutMs: 200 }).catch(() => {}))
  let before = count()
  let folders = 0
  let runs = 0
  for (let round = 0; runs < 300; round++) {
    await world.warmUp()
    // What the program opens for itself is there by now.
    if (round === 0) before = count()
    const ends = hostile.map(command => tryOut(`readlink /proc/$$/fd/1 >> where; ${command}`))
    runs += (await Promise.all(ends)).length
    // What is left running would be looked at by all that follow.
    await tryOut(deadly[round % deadly.length] ?? '')
    folders = Math.max(folders, fs.readdirSync(`${world.home}/tmp`).length)
  }
  const shared = fs.readFileSync(`${world.dir}/where`, 'utf8').match(/^\/dev\/dsh/gm)?.length ?? 0
  await world.warmUp()
  await world.shells.dispose()
  const left = fs
    .readdirSync(`${world.home}/tmp`)
    .filter(name => fs.existsSync(`${world.home}/tmp/${name}/bash`))
  for (let look = 0; look < 200 && count().files > before.files; look++) await pause(10)
  console.log(JSON.stringify({ runs, shared, folders, left, before, after: count() }))
  await world[Symbol.asyncDispose]()
}

await (deed === 'leave' ? leave() : census())
