/** One way out of the sandbox that is tried. */
export interface Escape {
  readonly section: string
  readonly name: string
  /**
   * For bash, in the workspace. It prints ESCAPED where it reaches what it should not; whatever else it reaches is seen
   * from outside.
   */
  readonly command: string
  /** What holds it. */
  readonly holder: string
  /** Left out where the command does harm without a sandbox, or needs one to mean anything. */
  readonly control?: 'unsafe'
}

const readOnly = 'everything but the workspace is mounted read-only'
const held = 'the name is a mount of its own, read-only'
const pinned = 'the folder is a mount of its own, which cannot be moved or removed'
const hidden = 'an empty mount without rights stands in its place'
const masked = '`/dev/null` is mounted over it'
const noNetwork = 'a network namespace of its own'
const processes = 'a process namespace of its own'
const noRights = 'no capabilities, and none to be had: no further user namespaces, no_new_privs'

const connect = (where: string): string =>
  `"$NODE" -e "require('net').connect(${where}).on('connect',()=>{console.log('ESCAPED');process.exit()}).on('error',e=>{console.log(e.code);process.exit(1)})"`

const files: readonly Omit<Escape, 'section'>[] = [
  {
    name: 'write beside the workspace',
    command: 'echo x > "$OUT/new"; echo x > "$OUT/victim"; rm -f "$OUT/victim"',
    holder: readOnly,
  },
  {
    name: 'write through `..`',
    command: 'echo x > ../outside/new; cp /etc/hostname ../outside',
    holder: readOnly,
  },
  {
    name: 'write through a symbolic link',
    command: 'ln -s "$OUT" link; echo x > link/new; ln -s "$OUT/victim" file; echo x > file',
    holder: readOnly,
  },
  {
    name: 'swap a folder for a link while writing',
    command:
      '(for i in $(seq 150); do rm -rf d; mkdir d; rm -rf d; ln -s "$OUT" d; done) & while kill -0 $!; do echo x > d/raced; done 2>/dev/null; wait',
    holder: 'paths are resolved by the kernel within the mounts',
  },
  {
    name: 'write through a hard link',
    command: 'ln "$OUT/victim" hard && echo x > hard',
    holder: 'no hard link leads from one mount to another',
  },
  {
    name: 'move a file out, or one in',
    command: 'echo x > a; mv a "$OUT/moved"; mv "$OUT/victim" here',
    holder: readOnly,
  },
  {
    name: 'move or remove the workspace itself',
    command: 'mv "$WS" "$WS-moved"; rm -rf "$OUT"',
    holder: readOnly,
    control: 'unsafe',
  },
  {
    name: 'mount another folder over one of the workspace',
    command: 'mkdir m; mount --bind "$OUT" m && echo x > m/new',
    holder: noRights,
    control: 'unsafe',
  },
  {
    name: 'write through `/proc/self/root` and `/proc/1/root`',
    command:
      'echo x > "/proc/self/root$OUT/new"; echo x > "/proc/1/root$OUT/new"; echo x > "/proc/1/cwd/../outside/new"',
    holder: `${processes}; its root is the confined one`,
  },
  {
    name: 'write to folders of the system',
    command:
      'for d in / /etc /usr /usr/bin /var /opt /root /home /lib /boot /sys; do (: > "$d/dsh-escape") 2>/dev/null && echo ESCAPED; done; true',
    holder: readOnly,
    control: 'unsafe',
  },
  {
    name: 'replace the program that confines',
    command: 'for f in "$BWRAP" "$NODE" /bin/sh; do (: >> "$f") 2>/dev/null && echo ESCAPED; done; true',
    holder: readOnly,
    control: 'unsafe',
  },
  {
    name: 'change a mapped file through `/proc/self/mem`',
    command: `"$NODE" -e "const fs=require('fs');const l=fs.readFileSync('/proc/self/maps','utf8').split('\\n').find(x=>/ r--p 00000000 .*libc\\.so/.test(x));const f=l.slice(l.indexOf('/'));const m=fs.openSync('/proc/self/mem','r+');fs.writeSync(m,Buffer.from('DSH!'),0,4,parseInt(l,16));if(fs.readFileSync(f).subarray(0,4).toString()==='DSH!')console.log('ESCAPED')"`,
    holder: 'a private mapping is changed in memory alone',
    control: 'unsafe',
  },
  {
    name: 'leave a file in the shared `/tmp`',
    command: 'echo x > "/tmp/$MARK"',
    holder: '`/tmp` is the temporary folder of the session',
  },
  {
    name: 'read the shared `/tmp`',
    command: 'cat "/tmp/$MARK-there"',
    holder: '`/tmp` is the temporary folder of the session',
  },
]

const guarded: readonly Omit<Escape, 'section'>[] = [
  {
    name: 'write a hook of git',
    command: 'echo "touch $OUT/pwned" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit',
    holder: held,
  },
  { name: 'set `core.fsmonitor`', command: 'git config core.fsmonitor "touch $OUT/pwned"', holder: held },
  { name: 'set `core.hooksPath`', command: 'git config core.hooksPath evil', holder: held },
  {
    name: 'put another file in place of `.git/config`',
    command: 'cp .git/config c; git config -f c core.fsmonitor x; mv -f c .git/config',
    holder: held,
  },
  {
    name: 'append to `.git/config` through a hard link',
    command: 'ln .git/config c && echo "[core]fsmonitor=x" >> c',
    holder: 'no hard link leads from one mount to another',
  },
  {
    name: 'put a link in place of the hooks',
    command: 'mkdir evil; rm -rf .git/hooks; ln -s ../evil .git/hooks',
    holder: held,
  },
  {
    name: 'move `.git` away and make another',
    command: 'mv .git old; mkdir -p .git/hooks; git init -q .; git config core.fsmonitor x',
    holder: pinned,
  },
  {
    name: 'put a file that leads elsewhere in place of `.git`',
    command: 'git init -q evil; rm -rf .git; echo "gitdir: evil/.git" > .git',
    holder: pinned,
  },
  {
    name: 'lead git to another configuration by `.git/commondir`',
    command:
      'cp -r .git evil; git config -f evil/config core.fsmonitor x; rm -f .git/commondir; echo ../evil > .git/commondir',
    holder: 'a file that says what git takes for granted, mounted read-only',
  },
  {
    name: 'change the repository of a submodule',
    command:
      'git config -f .git/modules/sub/config core.fsmonitor x; echo x > .git/modules/sub/hooks/post-checkout',
    holder: held,
  },
  {
    name: 'lead a submodule to another repository',
    command: 'echo "gitdir: ../evil" > sub/.git; mv sub other; mkdir sub; echo "gitdir: ../evil" > sub/.git',
    holder: pinned,
  },
  {
    name: 'lead another work tree to another configuration',
    command: 'echo ../../../evil > .git/worktrees/tree/commondir',
    holder: held,
  },
  {
    name: 'change hooks that lie in the workspace by `core.hooksPath`',
    command: 'echo x > .husky/pre-commit; mv .husky h; mkdir .husky',
    holder: held,
  },
  {
    name: 'change a file that `.git/config` includes',
    command: 'echo "[core]fsmonitor=x" >> team.gitconfig',
    holder: held,
  },
  {
    name: 'change settings of editors',
    command: 'echo x > .vscode/tasks.json; mv .vscode v; mkdir -p .vscode',
    holder: held,
  },
  {
    name: 'make settings of editors, shells and agents that are not there',
    command:
      'mkdir .idea .claude .codex .dsh; echo x > .envrc; ln -s evil .idea; rmdir .idea; echo x > .claude/settings.json; echo x > .dsh/dsh.yml',
    holder: 'the name is taken by a folder, mounted read-only',
  },
]

const secrets: readonly Omit<Escape, 'section'>[] = [
  {
    name: 'read keys and credentials of the person',
    command:
      'cat "$HOME/.ssh/id_ed25519" "$HOME/.aws/credentials" "$HOME/.netrc" "$HOME/.config/gh/hosts.yml"',
    holder: hidden,
  },
  {
    name: 'find them by another way',
    command:
      'ln -s "$HOME" h; cat h/.ssh/id_ed25519; cp -r "$HOME" copy; grep -r SECRET copy; cat "/proc/1/root$HOME/.ssh/id_ed25519"',
    holder: hidden,
  },
  {
    name: 'uncover what is hidden',
    command:
      'umount "$HOME/.ssh"; umount -l "$HOME/.ssh"; chmod 700 "$HOME/.ssh"; mv "$HOME/.ssh" s; cat "$HOME/.ssh/id_ed25519"',
    holder: hidden,
    control: 'unsafe',
  },
  {
    name: 'read keys and logs of the program, of other sessions too',
    command:
      'cat "$DSH_DIR/credentials.json" "$DSH_DIR"/sessions/*/*/log; ls -R "$DSH_DIR" | grep log && echo ESCAPED',
    holder: hidden,
  },
  {
    name: 'read the environment of the program',
    command: 'cat /proc/*/environ /proc/$PPID/environ "/proc/$VICTIM/environ" | tr "\\0" "\\n" | grep SECRET',
    holder: processes,
  },
  {
    name: 'read files that the program has open',
    command:
      'for f in /proc/self/fd/*; do case "$(readlink "$f")" in "$OUT"*) echo ESCAPED;; esac; done; cat "/proc/$VICTIM/fd/3"',
    holder: 'descriptors are closed on exec',
    control: 'unsafe',
  },
]

const reach: readonly Omit<Escape, 'section'>[] = [
  {
    name: 'connect to a server of this machine by IPv4',
    command: connect('$PORT,"127.0.0.1"').replaceAll('"127', "'127").replaceAll('1")', "1')"),
    holder: noNetwork,
  },
  {
    name: 'connect to a server of this machine by IPv6',
    command: connect("$PORT6,'::1'"),
    holder: noNetwork,
  },
  {
    name: 'connect by the shell alone',
    command: 'exec 3<>"/dev/tcp/127.0.0.1/$PORT" && echo ESCAPED',
    holder: noNetwork,
  },
  { name: 'connect to the world', command: connect("53,'1.1.1.1'"), holder: noNetwork, control: 'unsafe' },
  {
    name: 'send a datagram, as a question for a name does',
    command: `"$NODE" -e "require('dgram').createSocket('udp4').send('q',$PORT_UDP,'127.0.0.1',function(){this.close()})"`,
    holder: noNetwork,
  },
  {
    name: 'connect to the socket of a container engine',
    command: connect("'$HOME/.docker/run/docker.sock'"),
    holder: hidden,
  },
  { name: 'connect to the agent that holds keys', command: connect("'$OUT/agent.sock'"), holder: hidden },
  {
    name: 'connect to sockets below `/run`',
    command: '[ -z "$(find /run /var/run/ -type s 2>/dev/null)" ] || echo ESCAPED',
    holder: 'an empty folder stands in place of `/run`',
    control: 'unsafe',
  },
  {
    name: 'connect to a server by a socket in a folder that can be read',
    command: `${connect("'$OUT/server.sock'")}; ${connect("'$HOME/server.sock'")}`,
    holder: masked,
  },
  {
    name: 'uncover such a socket, or find it by another way',
    command: `umount -l "$OUT/server.sock"; mv "$OUT/server.sock" s; ln -s "$OUT" l; ${connect("'l/server.sock'")}; ${connect("'/proc/1/root$OUT/server.sock'")}`,
    holder: masked,
    control: 'unsafe',
  },
  { name: 'connect to an abstract socket', command: connect("'\\0$MARK'"), holder: noNetwork },
]

const host: readonly Omit<Escape, 'section'>[] = [
  {
    name: 'see processes of the machine',
    command: '[ -e "/proc/$VICTIM/status" ] && grep -q "^Name:.sleep" "/proc/$VICTIM/status" && echo ESCAPED',
    holder: processes,
  },
  { name: 'end a process of the machine', command: 'kill -9 "$VICTIM"', holder: processes },
  { name: 'end every process', command: 'kill -9 -1', holder: processes, control: 'unsafe' },
  {
    name: 'outlive the command',
    command: '(setsid sleep 98765 >/dev/null 2>&1 &); sleep 0.2',
    holder: `${processes}, which ends with the command`,
  },
  {
    name: 'take over the process that waits outside',
    command:
      'grep -q "CapEff:.0000000000000000" /proc/1/status || echo ESCAPED; nsenter -t 1 -m -n -p true && echo ESCAPED',
    holder: `${processes}, whose first process has no capabilities either`,
    control: 'unsafe',
  },
  {
    name: 'make the root writable',
    command: 'mount -o remount,rw / && echo ESCAPED; mount -o remount,bind,rw "$OUT" && echo x > "$OUT/new"',
    holder: noRights,
    control: 'unsafe',
  },
  {
    name: 'make namespaces with rights of their own',
    command:
      'unshare -U true && echo ESCAPED; unshare -Urm true && echo ESCAPED; unshare -m true && echo ESCAPED',
    holder: noRights,
    control: 'unsafe',
  },
  {
    name: 'make a device, change the root',
    command: 'mknod disk b 8 0 && echo ESCAPED; chroot / true && echo ESCAPED',
    holder: noRights,
    control: 'unsafe',
  },
  {
    name: 'use a device',
    command:
      'for f in /dev/mem /dev/kmsg /dev/kvm /dev/fuse /dev/loop0 /dev/sda /dev/vda /dev/nvme0n1 /dev/input; do [ -e "$f" ] && echo ESCAPED; done; true',
    holder: 'a `/dev` with null, zero, full, random, urandom, tty and nothing else',
    control: 'unsafe',
  },
  {
    name: 'set a program to run at a crash, by `core_pattern`',
    command: '(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo ESCAPED',
    holder: 'settings of the kernel are mounted read-only',
    control: 'unsafe',
  },
  {
    name: 'change settings of the kernel',
    command:
      'for f in $(find /proc/sys /proc/irq /proc/bus -type f -name "[a-o]*" 2>/dev/null | head -400) /proc/sysrq-trigger; do [ -w "$f" ] && (: >> "$f") 2>/dev/null && echo "ESCAPED $f"; done; true',
    holder: 'settings of the kernel are mounted read-only',
    control: 'unsafe',
  },
  {
    name: 'make a control group',
    command:
      'for d in $(find /sys/fs/cgroup -maxdepth 2 -type d 2>/dev/null); do mkdir "$d/dsh-escape" 2>/dev/null && echo ESCAPED; done; true',
    holder: '`/sys` is mounted read-only',
    control: 'unsafe',
  },
  {
    name: 'gain rights by a setuid program',
    command:
      'grep -q "NoNewPrivs:.1" /proc/self/status || echo ESCAPED; cp /bin/sh s; chmod u+s s; ./s -pc "cat /etc/shadow" | grep -q root && echo ESCAPED',
    holder: noRights,
    control: 'unsafe',
  },
  {
    name: 'type into the terminal of the person',
    command: '(: < /dev/tty) 2>/dev/null && echo ESCAPED',
    holder: 'a session without a terminal',
    control: 'unsafe',
  },
  {
    name: 'have the confining program load code',
    command:
      'echo x > evil.so; export LD_PRELOAD="$WS/evil.so"; tr "\\0" "\\n" < /proc/1/environ | grep LD_PRELOAD && echo ESCAPED',
    holder: 'it has started before the command',
    control: 'unsafe',
  },
]

const inSection = (section: string, rows: readonly Omit<Escape, 'section'>[]): Escape[] =>
  rows.map(row => ({ section, ...row }))

export const escapes: readonly Escape[] = [
  ...inSection('Files outside of the workspace', files),
  ...inSection('Protected paths', guarded),
  ...inSection('Secrets', secrets),
  ...inSection('Network and sockets', reach),
  ...inSection('Processes and the system', host),
]

/** The page that lists them, as far as it follows from the rows. */
export function escapeTables(rows: readonly Escape[]): string {
  const sections = [...new Set(rows.map(({ section }) => section))]
  return sections
    .map(section => {
      const lines = rows
        .filter(row => row.section === section)
        .map(({ name, holder }) => `| ${name} | ${holder} |`)
      return [`## ${section}`, '', '| Tried | What holds |', '|---|---|', ...lines, ''].join('\n')
    })
    .join('\n')
}
