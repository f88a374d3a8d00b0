/** How programs say that the kernel refused them a file. */
export const kernelRefusals = [
  'read-only file system',
  'permission denied',
  'operation not permitted',
] as const

/** How they say the same where mounts hold names, and where what they need of the machine is hidden. */
export const hiddenRefusals = [
  'device or resource busy',
  'is not writable',
  "isn't writable",
  'cannot connect to the docker daemon',
  'failed to connect to bus',
  'server on socket',
  'server through socket',
  'gpg failed to sign',
  'host key verification failed',
] as const

/** How they say that they reach nobody. A connection that is refused is none of them: the server may just be down. */
export const networkRefusals = [
  'network is unreachable',
  'enetunreach',
  'no route to host',
  'getaddrinfo',
  'eai_again',
  'temporary failure in name resolution',
  'temporary failure resolving',
  'name or service not known',
  'could not resolve host',
  'unable to resolve host',
  'could not translate host name',
  'failed to lookup address',
  'dial tcp: lookup',
  'dial udp',
  'unknownhostexception',
  'error trying to connect: dns error',
] as const
