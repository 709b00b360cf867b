// Prevents webhooks from reaching private networks of the sender. Each connection resolves its name once, checks every
// address, and connects to a checked address, so a name server cannot return another address later (DNS rebinding).

import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { MillraceError } from '../../foundation/error.ts';

export type HostResolver = (host: string) => Promise<readonly LookupAddress[]>;

export interface AddressGuardOptions {
  /** Private ranges that are allowed: `10.1.0.0/16`, `127.0.0.1/32`, `::1/128`. */
  readonly allow?: readonly string[] | undefined;
  /** Default: the resolver of the system. */
  readonly resolve?: HostResolver | undefined;
}

export interface AddressGuard {
  /** Throws `ADDRESS_FORBIDDEN` for a forbidden IP address; a host name is checked when it is resolved. */
  checkHost(host: string): void;
  readonly lookup: LookupFunction;
}

/** Ranges that IANA reserves for private networks, loopback, tests, multicast and future use. */
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

/** The only IPv6 range that IANA allocates; it excludes loopback, link-local, mapped and translated addresses. */
const globalV6 = blockList(['2000::/3']);

/** Ranges reserved within `globalV6`: protocol assignments with Teredo, documentation, and 6to4, which embeds IPv4. */
const forbiddenV6 = blockList(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** Whether the address belongs to the public internet. */
export function isPublicAddress(address: string): boolean {
  const bare = address.split('%', 1)[0] ?? '';
  const family = isIP(bare);
  if (family === 4) return !forbiddenV4.check(bare, 'ipv4');
  return family === 6 && globalV6.check(bare, 'ipv6') && !forbiddenV6.check(bare, 'ipv6');
}

export function createAddressGuard(options: AddressGuardOptions = {}): AddressGuard {
  const { allow = [], resolve = resolveBySystem } = options;
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
    // A mix of public and private addresses indicates an attack, so one forbidden address rejects all.
    for (const { address } of found) check(address, host);
    if (found.length === 0) throw new Error(`'${host}' has no address`);
    return found;
  }

  const ask = callbackify(addressesOf);
  return {
    checkHost(host) {
      const bare = host.replace(/^\[(.*)\]$/, '$1');
      // Node does not resolve IP addresses, so `lookup` never sees them.
      if (isIP(bare) !== 0) check(bare, bare);
    },
    lookup(host, { all, family }, callback) {
      ask(host, (error, found) => {
        if (error !== null) return callback(error, '', 0);
        const wanted = { 4: 4, IPv4: 4, 6: 6, IPv6: 6 }[String(family)] ?? 0;
        const fitting = wanted === 0 ? found : found.filter((each) => each.family === wanted);
        const [first] = fitting;
        if (first === undefined) {
          return callback(new Error(`'${host}' has no IPv${wanted} address`), '', 0);
        }
        if (all === true) return callback(null, [...fitting]);
        return callback(null, first.address, first.family);
      });
    },
  };
}

function resolveBySystem(host: string): Promise<readonly LookupAddress[]> {
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
