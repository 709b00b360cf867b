// The configuration of the product that the corpora attack: all modules, and webhooks whose URL is in the event. Names
// resolve as answers.json of the working folder says, and each connection of the process is written to connections.log.

import type { LookupAddress } from 'node:dns';
import { appendFileSync, readFileSync } from 'node:fs';
import { isIP, Socket, type LookupFunction } from 'node:net';
import { slackRequests } from '../../modules/slack-requests/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { defineConfig, defineModule } from '../../src/platform/index.ts';
import { allModules } from '../../tools/scope-reference.ts';
import { allowedAddress, hookType, type Answers } from './ssrf-corpus.ts';

const answers = JSON.parse(readFileSync('answers.json', 'utf8')) as Answers;
const lookups = new Map<string, number>();

const resolve = async (host: string): Promise<readonly LookupAddress[]> => {
  const at = lookups.get(host) ?? 0;
  lookups.set(host, at + 1);
  const lists = answers[host] ?? [];
  const found = lists[Math.min(at, lists.length - 1)];
  if (found === undefined) throw new Error(`ENOTFOUND ${host}`);
  return found.map((address) => ({ address, family: isIP(address) }));
};

recordConnections();

export default defineConfig({
  modules: [
    ...allModules().filter(({ name }) => name !== 'slack-requests'),
    // With a key, requests reach the encryption of secrets.
    slackRequests({ secretKeys: [{ id: 'k1', key: Buffer.alloc(32, 1).toString('base64') }] }),
    defineModule({
      name: 'hooks',
      outbox: [
        {
          name: 'sub:shop:hooks:v1',
          filter: { category: 'shop.hook.v1', types: [hookType] },
          mapper: {
            map: ({ payload, eventId }) => ({
              integrationType: `webhook:${eventId}`,
              eventType: hookType,
              payload: payload as { readonly url: string },
            }),
          },
        },
      ],
      destinations: {
        webhook: webhookDestination({
          endpoint: async ({ id, payload }) => ({
            id,
            url: String(payload['url']),
            secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
          }),
          allowHttp: true,
          allowAddresses: [`${allowedAddress}/32`],
          resolve,
        }),
      },
    }),
  ],
  server: {
    rateLimits: {
      known: { perSecond: 1e6, burst: 1e6 },
      unknown: { perSecond: 1e6, burst: 1e6 },
    },
  },
});

type Connect = (this: Socket, ...given: unknown[]) => Socket;

/** Writes the address of each connection, and refuses all that would leave the machine. */
function recordConnections(): void {
  const record = (address: string): void => appendFileSync('connections.log', `${address}\n`);
  const isLocal = (address: string): boolean => /^(127\.|::1$|::$|0\.0\.0\.0$)/.test(address);
  const connect = Reflect.get(Socket.prototype, 'connect') as Connect;
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]): Socket {
    // Node passes its own normalized arguments as one array.
    const [first] = (Array.isArray(given[0]) ? given[0] : given) as [unknown];
    if (typeof first !== 'object' || first === null || !('port' in first)) {
      return connect.apply(this, given);
    }
    const options = first as { host?: string; lookup?: LookupFunction };
    const { host = 'localhost', lookup } = options;
    if (isIP(host) !== 0) record(host);
    if (isIP(host) !== 0 && !isLocal(host)) return this.destroy(new Error(`blocked ${host}`));
    if (lookup !== undefined) {
      options.lookup = (name, wanted, done) =>
        lookup(name, wanted, (error, found, family) => {
          if (error !== null) return done(error, found, family);
          const all = typeof found === 'string' ? [{ address: found }] : found;
          for (const { address } of all) record(address);
          const isSafe = all.every(({ address }) => isLocal(address));
          return done(isSafe ? null : new Error(`blocked ${name}`), found, family);
        });
    }
    return connect.apply(this, given);
  };
}
