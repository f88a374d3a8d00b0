import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { commandsOf, coversCommand, parseShell, prefixOf } from './index.ts'
import type { ShellCommand } from './index.ts'

async function commandsIn(text: string): Promise<readonly ShellCommand[]> {
  const program = await parseShell(text)
  assert.ok(program, `${JSON.stringify(text)} cannot be read`)
  return commandsOf(program)
}

/** Words joined by spaces, `?` for one that only the shell knows. */
async function shown(text: string): Promise<readonly string[]> {
  const commands = await commandsIn(text)
  return commands.map(({ words }) => words.map(word => word ?? '?').join(' '))
}

describe('every simple command is found, wherever it stands', () => {
  const table: readonly (readonly [text: string, ...commands: string[]])[] = [
    ['a', 'a'],
    ['a b; c', 'a b', 'c'],
    ['a && b || c', 'a', 'b', 'c'],
    ['a | b |& c', 'a', 'b', 'c'],
    ['a & b', 'a', 'b'],
    ['! a', 'a'],
    ['time -p a', 'a'],
    ['(a; (b))', 'a', 'b'],
    ['{ a; b; }', 'a', 'b'],
    ['if a; then b; elif c; then d; else e; fi', 'a', 'b', 'c', 'd', 'e'],
    ['while a; do b; done', 'a', 'b'],
    ['until a; do b; done', 'a', 'b'],
    ['for x in 1; do a; done', '', 'a'],
    ['for ((;;)) do a; done', 'a'],
    ['select x in 1; do a; done', '', 'a'],
    ['case x in y) a;; *) b;& esac', 'a', 'b'],
    ['f() { a; }', 'a'],
    ['f () ( a )', 'a'],
    ['@() { a; }', 'a'],
    ['a <<E | b\nx; (\nE\nc', 'a', 'b', 'c'],
    ['if a <<E; then\n(\nE\nb; fi # (', 'a', 'b'],
    ['case x in (y) a;; z|w) b; esac', 'a', 'b'],
    ['a;# (\nb', 'a', 'b'],
    ['function f { a; }', 'a'],
    ['coproc a', 'a'],
    ['coproc X { a; }', 'a'],
    ['x $(a)', 'x ?', 'a'],
    ['x "$(a "$(b)")"', 'x ?', 'a ?', 'b'],
    ['x `a`', 'x ?', 'a'],
    ['x `a \\`b\\``', 'x ?', 'a ?', 'b'],
    ['x <(a) >(b)', 'x ? ?', 'a', 'b'],
    ['x ${y:-$(a)}', 'x ?', 'a'],
    ['x ${y/$(a)/$(b)}', 'x ?', 'a', 'b'],
    ['x $(( $(a) + 1 ))', 'x ?', 'a'],
    ['y=$(a)', '', 'a'],
    ['y=($(a) b)', '', 'a'],
    ['export y=$(a)', 'export ?', 'a'],
    ['[[ -f $(a) ]]', 'a'],
    ['x <<E\n$(a)\nE', 'x', 'a'],
    ["x <<'E'\n$(a)\nE", 'x'],
    ['x <<-E\n\t`a`\n\tE\nb', 'x', 'a', 'b'],
    ['x <<< "$(a)"', 'x', 'a'],
    ['x > $(a)', 'x', 'a'],
    ['x {y,$(a)}', 'x ?', 'a'],
    ['a # b; c', 'a'],
    ['a#b', 'a#b'],
    ['a \\\n b', 'a b'],
    ['a\n\nb', 'a', 'b'],
    ['a\r\nb', 'a\r', 'b'],
    ['trap "a b" EXIT', 'trap a b EXIT', 'a b'],
    ["trap 'a' 0 1", 'trap a 0 1', 'a'],
  ]
  for (const [text, ...commands] of table)
    test(JSON.stringify(text), async () => assert.deepEqual(await shown(text), commands))
})

describe('what a command starts is found', () => {
  const table: readonly (readonly [text: string, ...commands: string[]])[] = [
    ["bash -c 'a b; c'", 'a b', 'c'],
    ["sh -ec 'a'", 'a'],
    ["/bin/bash -lc 'a'", 'a'],
    ["bash -o pipefail -c 'a'", 'a'],
    ['bash --norc -c \'bash -c "a"\'', 'a'],
    ["zsh -c 'a'", 'zsh -c a', 'a'],
    ['bash -c "$x"', 'bash -c ?'],
    ['bash file', 'bash file'],
    ["bash -O extglob -c 'a'", 'bash -O extglob -c a'],
    ["eval 'a b'", 'a b'],
    ['eval a "b;" c', 'a b', 'c'],
    ['eval "$x"', 'eval ?'],
    ['env', 'env'],
    ['env A=1 a', 'a'],
    ['env -i -u B A=1 a b', 'a b'],
    ["env -S 'a b'", 'env -S a b'],
    ['env -C /x a', 'env -C /x a'],
    ['timeout 5 a', 'a'],
    ['timeout -k 1 -s KILL 5s a b', 'a b'],
    ['timeout --signal=KILL 5 a', 'a'],
    ['timeout $t a', 'timeout ? a'],
    ['timeout --sig KILL 5 a', 'timeout --sig KILL 5 a'],
    ['nice -n 5 a', 'a'],
    ['nice -5 a', 'a'],
    ['nohup a', 'a'],
    ['setsid -w a', 'a'],
    ['stdbuf -oL a', 'a'],
    ['ionice -c3 a', 'a'],
    ['command a', 'a'],
    ['command -v a', 'command -v a'],
    ['builtin a', 'a'],
    ['exec a', 'a'],
    ['exec -a x a', 'a'],
    ['\\time -p a', 'a'],
    ['xargs a', 'a ?'],
    ['xargs -0 -n1 a b', 'a b ?'],
    ['xargs -I{} a b{} c', 'a ? c'],
    ["xargs -I{} sh -c 'a {}'", 'sh -c ?'],
    ['xargs', 'xargs'],
    ['find . -exec a {} \\;', 'find . -exec a {} ;', 'a ?'],
    ['find . -exec a {} + -ok b \\;', 'find . -exec a {} + -ok b ;', 'a ?', 'b'],
    ['fd x -x a', 'fd x -x a', 'a'],
    ['sudo a b', 'sudo a b', 'a b'],
    ['sudo -u me -E A=1 a', 'sudo -u me -E A=1 a', 'a'],
    ['doas a', 'doas a', 'a'],
    ['busybox a', 'busybox a', 'a'],
    ["watch -n 1 'a b'", 'watch -n 1 a b', 'a b'],
    ['flock /x a', 'flock /x a', 'a'],
    ["flock /x -c 'a b'", 'flock /x -c a b', 'a b'],
    ['timeout 1 nice env A=1 bash -c "a"', '', 'a'],
    ['./timeout 5 a', './timeout 5 a'],
    ['a() { b; }; a', 'b', '?'],
  ]
  for (const [text, ...commands] of table)
    test(JSON.stringify(text), async () => assert.deepEqual(await shown(text), commands))
})

describe('what is no whole program, or not surely this one, is not read', () => {
  const texts = [
    'a (',
    'a )',
    "a 'b",
    'a "b',
    'a `b',
    'a $(b',
    'a ${b',
    'if a',
    'a; fi',
    'while a; do b',
    'case x in',
    '{ a',
    '( a',
    'a ;; b',
    '; a',
    '&& a',
    'a &&',
    '| a',
    'a |',
    'a > ',
    'for',
    'a\0b',
    'echo @(a|b)',
    'ls !(x)',
    'ls ( ; rm x',
    'ls (rm x',
    'if ls (; then rm x; fi',
    'ls ( && rm x',
    '(ls (; rm x)',
    'ls ( | rm x',
    'x $(ls ( ; rm x',
    'a $(b',
    'bash -c "a ("',
    'x `a "`',
    'x "$(a "',
    `${'('.repeat(2000)}a${')'.repeat(2000)}`,
    'a'.repeat(300_000),
  ]
  for (const text of texts)
    test(JSON.stringify(text.slice(0, 60)), async () => assert.equal(await parseShell(text), undefined))
})

test('a command knows what it is given besides its words, and where it stands', async () => {
  const [first, second] = await commandsIn(
    'A=1 B+=2 env C="$x" a 2>&1 >out >>more <in {fd}<>both <<<here | b &',
  )
  assert.deepEqual(first?.assignments, [
    { name: 'A', value: '1' },
    { name: 'B', value: undefined },
    { name: 'C', value: undefined },
  ])
  assert.deepEqual(
    first?.redirections.map(({ kind, target }) => [kind, target]),
    [
      ['duplicate', '1'],
      ['write', 'out'],
      ['append', 'more'],
      ['read', 'in'],
      ['both', 'both'],
      ['text', undefined],
    ],
  )
  assert.deepEqual(
    [first?.via, first?.isPiped, first?.isBackground, first?.isSubstituted],
    [['env'], true, true, false],
  )
  assert.equal(second?.text, 'b')
  const [, inner] = await commandsIn('x "$(a b)"')
  assert.deepEqual([inner?.text, inner?.isSubstituted], ['a b', true])
})

test('files that a whole block writes are a command without words', async () => {
  const [block] = await commandsIn('{ a; } >out 2>/dev/null')
  assert.deepEqual(
    [block?.words, block?.redirections.map(({ target }) => target)],
    [[], ['out', '/dev/null']],
  )
})

test('words that only the shell knows say what they surely begin with', async () => {
  const [command] = await commandsIn(
    'a src/*.ts "src/$x" src/$x ~/b -$x *.ts "$@" a{b,c} --x=~/y x[12] "a$@"',
  )
  assert.deepEqual(
    command?.words.slice(1),
    Array.from({ length: 11 }, () => undefined),
  )
  assert.deepEqual(command?.stems.slice(1), ['src/', 'src/', '', '/', '', '', '', 'a', '--x', 'x', ''])
})

test('values that may be code leave the program incomplete', async () => {
  const hidden = [
    '((x))',
    'echo $((x))',
    '[[ x -eq 1 ]]',
    '[[ -v x ]]',
    'echo ${x@P}',
    'echo ${!x}',
    'echo ${a[x]}',
    'a[x]=1',
    'a=([x]=1)',
    'a=(1 [x]+=1)',
    'a+=(["x"]=1)',
    'echo ${x:=y}',
    'echo ${x:y}',
    "echo $'a\\'; rm x #'",
    'for ((i=0;i<3;i++)) do a; done',
  ]
  for (const text of hidden) assert.equal((await parseShell(text))?.isComplete, false, text)
  const open = [
    '((1+2))',
    'echo $((1+2))',
    '[[ 1 -eq 1 ]]',
    '[[ $x == y ]]',
    'echo ${x} ${#x} ${x%y} ${x/a/b} ${a[1]} ${a[@]}',
    'a=(b [1]=c)',
    "echo $'\\n'",
  ]
  for (const text of open) assert.equal((await parseShell(text))?.isComplete, true, text)
})

describe('a rule remembers the program and its deed, or nothing', () => {
  const table: readonly (readonly [text: string, prefix: string | undefined])[] = [
    ['git status -s', 'git status'],
    ['git stash list', 'git stash list'],
    ['git -C /x status', undefined],
    ['git', undefined],
    ['git config alias.x y', undefined],
    ['git branch', 'git branch'],
    ['git branch -D x', undefined],
    ['git push', 'git push'],
    ['git push --force', undefined],
    ['git reset --hard', undefined],
    ['npm test', 'npm test'],
    ['npm run build -- --x', 'npm run build'],
    ['npm run', undefined],
    ['npm exec x', undefined],
    ['npx tsc -p .', 'npx tsc'],
    ['npx -y tsc', undefined],
    ['cargo test', 'cargo test'],
    ['cargo run', undefined],
    ['go test ./...', 'go test'],
    ['docker compose up', 'docker compose up'],
    ['docker run x', undefined],
    ['docker compose run x', undefined],
    ['make all', 'make all'],
    ['make', undefined],
    ['ls -l', 'ls'],
    ['./script.sh a', './script.sh'],
    ['python3 x.py --y', 'python3 x.py'],
    ['python3 -c x', undefined],
    ['node -e x', undefined],
    ['timeout 5 npm test', 'npm test'],
    ['A=1 npm test', 'npm test'],
    ['PATH=x npm test', undefined],
    ['npm test > x', undefined],
    ['npm test > /dev/null 2>&1', 'npm test'],
    ['npm test $x', undefined],
    ['npm test src/*.ts', 'npm test'],
    ['$x y', undefined],
    ['bash x.sh', undefined],
    ['rm x', undefined],
    ['sudo ls', undefined],
    ['env -C /x ls', undefined],
    ['xargs', undefined],
    ['find .', undefined],
    ['sed -i s/a/b/ x', undefined],
    ['curl x', undefined],
    ['source x', undefined],
    ['tar xf a', undefined],
    ['less a', undefined],
    ['git push --exec=x', undefined],
  ]
  for (const [text, prefix] of table)
    test(text, async () =>
      assert.equal(prefixOf((await commandsIn(text))[0] as ShellCommand)?.join(' '), prefix),
    )
})

test('a rule covers commands that begin with its words and do nothing besides', async () => {
  const covers = async (prefix: string, text: string): Promise<boolean> =>
    (await commandsIn(text)).every(command => coversCommand(prefix.split(' '), command))
  for (const text of [
    'npm test',
    'npm test -- -x',
    'timeout 9 npm test',
    'npm test 2>&1',
    '"npm" te\\st',
    'npm test src/*.ts',
  ])
    assert.ok(await covers('npm test', text), text)
  const others = [
    'npm',
    'npm tests',
    'npm run test',
    '/tmp/npm test',
    './npm test',
    'npm test; rm x',
    'npm test && rm x',
    'npm test $(rm x)',
    'npm test > x',
    'npm test $x',
    'npm test *',
    'LD_PRELOAD=x npm test',
    'sudo npm test',
    'nohup npm test',
    'npm() { rm x; }; npm test',
    'PATH=/x; npm test',
    'npm\u00a0test',
    'n\u0440m test',
    'echo npm test',
    'npm test <(rm x)',
    'cat < x | npm test',
  ]
  for (const text of others) assert.ok(!(await covers('npm test', text)), text)
  for (const text of ['git push --receive-pack=./x .', 'git push --exec ./x', 'git push --rec=x o'])
    assert.ok(!(await covers('git push', text)), text)
  for (const text of ['git clone -c a=b x', 'git clone -qu ./x y', 'git clone --templ=x y'])
    assert.ok(!(await covers('git clone', text)), text)
  for (const text of ['git push -u origin main', 'git push --force', 'git push --recurse-submodules=check'])
    assert.ok(await covers('git push', text), text)
  assert.ok(await covers('git push --exec ./x', 'git push --exec ./x'))
  const [command] = await commandsIn('npm test')
  assert.ok(command !== undefined && !coversCommand([], command))
})
