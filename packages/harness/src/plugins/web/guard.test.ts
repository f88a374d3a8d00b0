import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { refuseLocal } from './address.ts'
import { toTarget } from './target.ts'
import type { TargetRules } from './target.ts'

const rules: TargetRules = {
  maxUrlLength: 2048,
  ports: [80, 443, 8080, 8443],
  allowHosts: [],
  judgeAddress: refuseLocal,
}

function codeOf(url: string, more: Partial<TargetRules> = {}): string {
  try {
    toTarget(url, { ...rules, ...more })
    return 'admitted'
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('an address is refused', () => {
  const local = [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.100.100.200',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.254',
    '168.63.129.16',
    '169.254.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::1',
    '100::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'ff02::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:10::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2002:808:808::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'no address',
    '',
  ]
  for (const address of local) {
    test(address || 'an empty one', () => assert.notEqual(refuseLocal(address), undefined))
  }
})

describe('an address is let through', () => {
  const open = [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '223.255.255.255',
    '2001:200::1',
    '2606:4700:4700::1111',
    '2a00:1450:4001:81b::200e',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
  ]
  for (const address of open) test(address, () => assert.equal(refuseLocal(address), undefined))
})

describe('a URL is blocked', () => {
  const urls = [
    'http://127.0.0.1/',
    'http://127.1/',
    'http://127.0.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://127.0.0.1../',
    'http://0/',
    'http://0.0.0.0/',
    'http://1２7.0.0.1/',
    'http://①②⑦.⓪.⓪.①/',
    'http://127。0。0。1/',
    'http://%31%32%37.0.0.1/',
    'http://[::1]/',
    'http://[::]/',
    'http://[0:0:0:0:0:0:0:1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[::127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[fe80::1]/',
    'http://[fd00::1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://[fd00:ec2::254]/',
    'http://10.0.0.1/',
    'http://10.1/',
    'http://192.168.1/',
    'http://172.16.0.1/',
    'http://100.64.0.1/',
    'http://localhost/',
    'http://LOCALHOST/',
    'http://localhost./',
    'http://localhost../',
    'http://a.localhost/',
    'http://ⓛocalhost/',
    'http://printer.local/',
    'http://metadata.google.internal/',
    'http://router.lan/',
    'http://x.home.arpa/',
    'http://intranet/',
    'http://wiki./',
    'http://example.com:22/',
    'http://example.com:6379/',
    'https://example.com:8444/',
    'http://example.com:0/',
  ]
  for (const url of urls) test(url, () => assert.equal(codeOf(url), 'WEB_BLOCKED_URL'))
})

describe('a URL is no address of a page', () => {
  const urls = [
    '',
    'x',
    'example.com',
    '//example.com/',
    'file:///etc/passwd',
    'ftp://example.com/',
    'data:text/html,x',
    'javascript:alert(1)',
    'gopher://example.com/',
    'http://',
    'http://[fe80::1%25eth0]/',
    'http://[::1',
    'http://exa mple.com',
    'http://user@example.com/',
    'http://user:pass@example.com/',
    'http://:pass@example.com/',
    'https://256.256.256.256/',
    'http://example.com:70000/',
    `https://example.com/${'a'.repeat(2048)}`,
  ]
  for (const url of urls) {
    test(JSON.stringify(url.slice(0, 40)), () => assert.equal(codeOf(url), 'WEB_INVALID_URL'))
  }
})

describe('a URL is admitted', () => {
  const urls = [
    'http://example.com/',
    'HTTPS://EXAMPLE.COM/x?y#z',
    'https://example.com:8443/',
    'http://example.com:8080/',
    'https://example.com./',
    'https://bücher.example/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'https://localhost.example.com/',
    'https://mylocalhost.com/',
    'https://internal.example.com/',
    `https://example.com/${'a'.repeat(2048 - 20)}`,
  ]
  for (const url of urls) test(url.slice(0, 40), () => assert.equal(codeOf(url), 'admitted'))
})

test('a login in a URL is never repeated', () => {
  for (const url of [
    'http://user:secretword@example.com/',
    'ftp://user:secretword@example.com/',
    'x:secretword@y z',
  ]) {
    assert.throws(
      () => toTarget(url, rules),
      error => !String(error).includes('secretword'),
    )
  }
})

describe('an entry of allowHosts', () => {
  const cases: readonly (readonly [entry: string, url: string, isAllowed: boolean])[] = [
    ['localhost', 'http://localhost:3000/', true],
    ['localhost', 'http://localhost./', true],
    ['localhost:3000', 'http://localhost:3000/', true],
    ['localhost:3000', 'http://localhost:3001/', false],
    ['localhost', 'http://a.localhost/', false],
    ['LocalHost:3000', 'http://LOCALHOST:3000/', true],
    ['127.0.0.1', 'http://2130706433:9/', true],
    ['127.1', 'http://127.0.0.1/', true],
    ['::1', 'http://[::1]:8/', true],
    ['[::1]', 'http://[0:0:0:0:0:0:0:1]/', true],
    ['[::1]:8', 'http://[::1]:8/', true],
    ['[::1]:8', 'http://[::1]:9/', false],
    ['*.corp.lan', 'http://wiki.corp.lan:81/', true],
    ['*.corp.lan', 'http://corp.lan/', false],
    ['*.corp.lan', 'http://evilcorp.lan/', false],
    ['*.corp.lan:81', 'http://wiki.corp.lan:82/', false],
    ['bücher.lan', 'http://xn--bcher-kva.lan/', true],
    ['example.com', 'http://example.com:22/', true],
    ['', 'http://localhost/', false],
    ['*', 'http://localhost/', false],
  ]
  for (const [entry, url, isAllowed] of cases) {
    test(`${JSON.stringify(entry)} ${isAllowed ? 'admits' : 'does not admit'} ${url}`, () => {
      assert.equal(codeOf(url, { allowHosts: [entry] }), isAllowed ? 'admitted' : 'WEB_BLOCKED_URL')
    })
  }
})

test('a blocked URL says what it leads to and how a person opens it', () => {
  assert.throws(() => toTarget('http://0x7f.1/', rules), {
    message:
      '127.0.0.1 may not be reached: this machine; a person can list it under allowHosts in the config of web',
  })
  assert.throws(() => toTarget('http://example.com:22/', rules), {
    message:
      'port 22 of example.com may not be reached, only 80, 443, 8080, 8443; a person can list it under allowHosts in the config of web',
  })
})
