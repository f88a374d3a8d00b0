import type { OptionSpec } from './options.ts'

/** How a program that starts another one is given it. */
export interface Wrapper extends OptionSpec {
  /** Words between the options and the command. */
  readonly operands?: number
  /** Variables may stand before the command. */
  readonly takesVariables?: boolean
  /** It gives the command more words of its own. */
  readonly addsWords?: boolean
  /** The words are put together and read by a shell. */
  readonly joins?: boolean
  /** It does more than to start the command as it is, so it counts as a command itself. */
  readonly isMore?: boolean
}

export const wrappers: Readonly<Record<string, Wrapper>> = {
  timeout: {
    flags: 'vfp',
    values: 'ks',
    longFlags: ['foreground', 'preserve-status', 'verbose'],
    longValues: ['kill-after', 'signal'],
    operands: 1,
  },
  nice: { flags: '0123456789', values: 'n', longValues: ['adjustment'] },
  ionice: { flags: 't', values: 'cn', longFlags: ['ignore'], longValues: ['class', 'classdata'] },
  nohup: {},
  setsid: { flags: 'cfw', longFlags: ['ctty', 'fork', 'wait'] },
  stdbuf: { values: 'ioe', longValues: ['input', 'output', 'error'] },
  time: { flags: 'pv' },
  command: { flags: 'p' },
  builtin: {},
  exec: { flags: 'cl', values: 'a' },
  env: {
    flags: 'i0v',
    values: 'u',
    longFlags: ['ignore-environment'],
    longValues: ['unset'],
    takesVariables: true,
  },
  eval: { joins: true },
  xargs: {
    flags: '0rtpx',
    values: 'nPILsdaE',
    longFlags: ['null', 'no-run-if-empty', 'verbose', 'exit'],
    longValues: ['max-args', 'max-procs', 'max-chars', 'delimiter', 'arg-file', 'replace'],
    addsWords: true,
  },
  sudo: {
    flags: 'nEHisSbAkPB',
    values: 'ugpCrtTUDR',
    longFlags: ['non-interactive', 'preserve-env', 'set-home', 'login', 'shell', 'stdin'],
    longValues: ['user', 'group'],
    takesVariables: true,
    isMore: true,
  },
  doas: { flags: 'nsL', values: 'uC', isMore: true },
  flock: {
    flags: 'xsnoFu',
    values: 'wE',
    longFlags: ['exclusive', 'shared', 'nonblock'],
    operands: 1,
    isMore: true,
  },
  watch: {
    flags: 'bcdegtwx',
    values: 'nq',
    longFlags: ['exec'],
    longValues: ['interval'],
    joins: true,
    isMore: true,
  },
  busybox: { isMore: true },
  toybox: { isMore: true },
  chroot: { operands: 1, isMore: true },
  strace: { flags: 'fqtTvxy', values: 'eopsSPE', isMore: true },
}

/** Shells whose language is near enough to bash, and what they take before `-c`. */
export const shells: Readonly<Record<string, { readonly isOther: boolean }>> = {
  bash: { isOther: false },
  sh: { isOther: false },
  dash: { isOther: false },
  ash: { isOther: false },
  ksh: { isOther: true },
  mksh: { isOther: true },
  zsh: { isOther: true },
}

export const shellOptions: OptionSpec = {
  flags: 'aefhlmnptuvxBCcisr',
  values: 'o',
  longFlags: ['norc', 'noprofile', 'login', 'posix'],
}
