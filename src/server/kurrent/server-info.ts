// What clients ask about the server before they trust it: its methods and version, its cluster.

import { createIds } from '../../foundation/ids.ts';
import type { CallKit } from './calls.ts';
import type { Method, Services } from './services.ts';

export interface EndPoint {
  readonly address: string;
  /** Known once the server listens. */
  readonly port: () => number;
}

/** The version of the protocol that is spoken; clients compare it with what their calls need. */
const serverVersion = '25.1.0';

/** A cluster of one is led by its only member. */
const leader = 8;

interface SupportedMethod {
  readonly serviceName: string;
  readonly methodName: string;
  readonly features: readonly string[];
}

/** Clients compare names in lower case, and some of them do not lower ours. */
export function supportedMethods(services: Services): SupportedMethod[] {
  return Object.entries(services).flatMap(([serviceName, methods]) =>
    Object.entries(methods).map(([name, { features = [] }]) => ({
      serviceName,
      methodName: name.toLowerCase(),
      features,
    })),
  );
}

export function serverServices(calls: CallKit, others: Services, where: EndPoint): Services {
  const instanceId = { string: createIds().next() };
  const scope = 'event_store.client.server';
  const own: Services = {
    'event_store.client.server_features.ServerFeatures': {
      GetSupportedMethods: {
        request: 'event_store.client.Empty',
        response: `${scope}.SupportedMethods`,
        handler: calls.anonymous(async () => ({
          methods: supportedMethods({ ...others, ...own }),
          eventStoreServerVersion: serverVersion,
        })),
      } satisfies Method,
    },
    'event_store.client.gossip.Gossip': {
      Read: {
        request: 'event_store.client.Empty',
        response: `${scope}.ClusterInfo`,
        handler: calls.anonymous(async () => ({
          members: [
            {
              instanceId,
              timeStamp: Date.now(),
              state: leader,
              isAlive: true,
              httpEndPoint: { address: where.address, port: where.port() },
            },
          ],
        })),
      } satisfies Method,
    },
  };
  return own;
}
