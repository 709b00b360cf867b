// The table of all methods of the server: their messages and handlers.

import type * as GrpcJs from '@grpc/grpc-js';
import type { CallKit } from './calls.ts';
import type { KurrentContext } from './context.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import type { Fields } from './protocol/message.ts';
import { streamsService } from './streams/handlers.ts';
import { persistentService } from './persistent/handlers.ts';
import type { Groups } from './persistent/groups.ts';
import { streamsV2Service } from './streams-v2/handlers.ts';
import type { Address } from './persistent/leadership.ts';
import { serverServices } from './server-info.ts';

export interface Method {
  readonly request: Fields;
  readonly response: Fields;
  readonly requestStream?: boolean | undefined;
  readonly responseStream?: boolean | undefined;
  /** The features in the list of supported methods. */
  readonly features?: readonly string[] | undefined;
  readonly handler: GrpcJs.UntypedHandleCall;
}

/** By service, then by method. */
export type Services = Readonly<Record<string, Readonly<Record<string, Method>>>>;

export function createServices(
  context: KurrentContext,
  groups: Groups,
  calls: CallKit,
  where: () => Address,
): Services {
  const services: Services = {
    ...streamsService(context, calls),
    ...streamsV2Service(context, calls),
    ...persistentService(context, groups, calls),
  };
  return {
    ...services,
    ...serverServices(calls, services, { where, members: () => groups.members }),
  };
}

export function toDefinition(
  protocol: Protocol,
  service: string,
  methods: Readonly<Record<string, Method>>,
): GrpcJs.ServiceDefinition {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => {
      const request = protocol.codec(method.request);
      const response = protocol.codec(method.response);
      return [
        name,
        {
          path: `/${service}/${name}`,
          requestStream: method.requestStream ?? false,
          responseStream: method.responseStream ?? false,
          requestSerialize: request.encode,
          requestDeserialize: request.decode,
          responseSerialize: response.encode,
          responseDeserialize: response.decode,
        },
      ];
    }),
  );
}
