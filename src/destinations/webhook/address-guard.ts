// Where a webhook may not go: into the sender's own network. The name is resolved once for each
// connection, every address is looked at, and the connection is made to what was looked at, so that a
// name server that answers differently the second time gains nothing.

import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { MillraceError } from '../../foundation/error.ts';

export type HostResolver = (host: string) => Promise<readonly LookupAddress[]>;

export interface AddressGuardOptions {
  /** Ranges that are allowed although they are private: `10.1.0.0/16`, `127.0.0.1/32`, `::1/128`. */
  readonly allow?: readonly string[];
  /** Default: the machine's resolver. */
  readonly resolve?: HostResolver;
}

export interface AddressGuard {
  /** Throws `ADDRESS_FORBIDDEN` where the host is an address; a name is checked when it is resolved. */
  checkHost(host: string): void;
  readonly lookup: LookupFunction;
}

/** What IANA keeps for private networks, this machine, tests, multicast and the future. */
const forbiddenV4 = blockList([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/** Of IPv6 only this is given out; so loopback, link-local, mapped and translated ones are not in it. */
const globalV6 = blockList(['2000::/3']);

/** Inside of it: protocol assignments with Teredo, documentation, 6to4, which holds an IPv4 address. */
const forbiddenV6 = blockList(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** Whether an address is one of the public internet. */
export function isPublicAddress(address: string): boolean {
  const bare = address.split('%', 1)[0] ?? '';
  const family = isIP(bare);
  if (family === 4) return !forbiddenV4.check(bare, 'ipv4');
  return family === 6 && globalV6.check(bare, 'ipv6') && !forbiddenV6.check(bare, 'ipv6');
}

export function createAddressGuard(options: AddressGuardOptions = {}): AddressGuard {
  const { allow = [], resolve = resolveByMachine } = options;
  const allowed = blockList(allow);

  const check = (address: string, host: string): void => {
    const family = isIP(address);
    const isAllowed =
      isPublicAddress(address) ||
      (family !== 0 && allowed.check(address, family === 4 ? 'ipv4' : 'ipv6'));
    if (isAllowed) return;
    throw new MillraceError(
      'ADDRESS_FORBIDDEN',
      `'${host}' is not an address of the public internet`,
      {
        details: { host },
      },
    );
  };

  async function addressesOf(host: string): Promise<readonly LookupAddress[]> {
    const found = await resolve(host);
    // One good address among bad ones is what an attack looks like, not a receiver.
    for (const { address } of found) check(address, host);
    if (found.length === 0) throw new Error(`'${host}' has no address`);
    return found;
  }

  const ask = callbackify(addressesOf);
  return {
    checkHost(host) {
      const bare = host.replace(/^\[(.*)\]$/, '$1');
      // No name server is asked about an address, so `lookup` never sees it.
      if (isIP(bare) !== 0) check(bare, bare);
    },
    lookup(host, { all, family }, callback) {
      ask(host, (error, found) => {
        if (error !== null) return callback(error, '', 0);
        const wanted = { 4: 4, IPv4: 4, 6: 6, IPv6: 6 }[String(family)] ?? 0;
        const fitting = wanted === 0 ? found : found.filter((each) => each.family === wanted);
        const [first] = fitting;
        if (first === undefined) {
          return callback(new Error(`'${host}' has no such address`), '', 0);
        }
        if (all === true) return callback(null, [...fitting]);
        return callback(null, first.address, first.family);
      });
    },
  };
}

function resolveByMachine(host: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    dnsLookup(host, { all: true }, (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits = ''] = range.split('/');
    const family = isIP(address);
    const length = Number(bits);
    const isGood =
      family !== 0 && /^\d+$/.test(bits) && length >= 0 && length <= (family === 4 ? 32 : 128);
    if (!isGood) {
      throw new MillraceError('CONFIG_INVALID', `'${range}' is not a range such as 10.1.0.0/16`);
    }
    list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}
