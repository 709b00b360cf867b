// URLs and answers of name servers by which a webhook could reach the machine or its network.

/** The addresses that a name has, for one lookup after the other; the last ones stay. */
export type Answers = Readonly<Record<string, readonly (readonly string[])[]>>;

/** The only loopback address that webhooks may reach. */
export const allowedAddress = '127.0.0.9';

/** The type of events that cause a webhook, with the URL in their payload. */
export const hookType = 'hook.requested.v1';

/** Spellings of 127.0.0.1 and of the unspecified address; `:port` is added. */
const ipv4Forms = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '127.0.0.1.',
  '127.255.255.254',
  '2130706433',
  '0x7f000001',
  '0x7f.0x0.0x0.0x1',
  '0x7f.1',
  '017700000001',
  '0177.0.0.1',
  '0177.0x0.0.01',
  '0',
  '0.0.0.0',
  '0x0',
  '①②⑦.⓪.⓪.①',
  '127。0。0。1',
  '127%2e0%2e0%2e1',
];

const ipv6Forms = [
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:0:7f00:1::]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd12:3456::1]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[3fff::1]',
];

/** Private and reserved networks; the product refuses them before a connection. */
const networks = [
  '10.0.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
];

/** URLs that some parsers read differently; `PORT` is replaced. */
const oddUrls = [
  'http://localhost:PORT/',
  'http://LOCALHOST:PORT/',
  'http://localhost.:PORT/',
  'http://user:password@127.0.0.1:PORT/',
  'http://public.example@127.0.0.1:PORT/',
  'http://127.0.0.1:PORT#@public.example/',
  'http://127.0.0.1:PORT\\@public.example/',
  'http:127.0.0.1:PORT/',
  'http:\\\\127.0.0.1:PORT\\',
  '\thttp://127.0.0.1:PORT/',
  'https://127.0.0.1:PORT/',
  'ftp://127.0.0.1:PORT/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:PORT/_GET',
  'data:text/plain,x',
  '//127.0.0.1:PORT/',
  '127.0.0.1:PORT',
];

const privateAnswers = [
  '127.0.0.1',
  '0.0.0.0',
  '10.0.0.1',
  '169.254.169.254',
  '192.168.1.1',
  '::1',
  '::',
  '::ffff:127.0.0.1',
  'fe80::1',
  'fd00::1',
  '64:ff9b::7f00:1',
];
const publicAddress = '1.1.1.1';

const privateNames: Answers = {
  ...Object.fromEntries(privateAnswers.map((address, at) => [`private${at}.example`, [[address]]])),
  'localhost.': [['127.0.0.1']],
  localhost: [['127.0.0.1', '::1']],
  'mixed-last.example': [[publicAddress, '127.0.0.1']],
  'mixed-first.example': [['127.0.0.1', publicAddress]],
  'mixed-families.example': [[publicAddress, '::1']],
  'no-address.example': [['not an address']],
};

export const answers: Answers = {
  ...privateNames,
  'rebinding.example': [[allowedAddress], ['127.0.0.1']],
};

/** URLs that the product must refuse without a connection. */
export function ssrfTargets(port: number): readonly string[] {
  const hosts = [...ipv4Forms, ...ipv6Forms, ...networks, ...Object.keys(privateNames)];
  return [
    ...hosts.map((host) => `http://${host}:${port}/`),
    ...oddUrls.map((url) => url.replaceAll('PORT', String(port))),
  ];
}
