// The table of all methods of the server: their messages and handlers.

import type * as GrpcJs from '@grpc/grpc-js';
import type { CallKit } from './calls.ts';
import type { KurrentContext } from './context.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import type { Fields } from './protocol/message.ts';
import { persistentService } from './persistent/handlers.ts';
import type { Groups } from './persistent/groups.ts';
import type { Address } from './persistent/leadership.ts';
import { serverServices } from './server-info.ts';
import {
  appendRequest,
  appendResponse,
  batchRequest,
  batchResponse,
  deleteRequest,
  deleteResponse,
  readRequest,
  readResponse,
  type WireAppendRequest,
  type WireAppendResponse,
  type WireBatchRequest,
  type WireBatchResponse,
  type WireDeleteRequest,
  type WireDeleteResponse,
  type WireReadRequest,
  type WireReadResponse,
} from './protocol/streams-messages.ts';
import { append } from './streams/append.ts';
import { batchAppend } from './streams/batch-append.ts';
import { deleteStream, tombstoneStream } from './streams/delete.ts';
import { read } from './streams/read.ts';
import { appendRecords, appendSession } from './streams-v2/append-many.ts';
import {
  recordsRequest,
  recordsResponse,
  sessionRequest,
  sessionResponse,
  type WireRecordsRequest,
  type WireRecordsResponse,
  type WireSessionRequest,
  type WireSessionResponse,
} from './protocol/streams-v2-messages.ts';

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

function streamsService(context: KurrentContext, calls: CallKit): Services {
  return {
    'event_store.client.streams.Streams': {
      Read: {
        request: readRequest,
        response: readResponse,
        responseStream: true,
        features: ['position', 'events'],
        handler: calls.serve<WireReadRequest, WireReadResponse>((request, send, info) =>
          read(context, request, send, info),
        ),
      },
      Append: {
        request: appendRequest,
        response: appendResponse,
        requestStream: true,
        handler: calls.collect<WireAppendRequest, WireAppendResponse>((requests, info) =>
          append(context, requests, info),
        ),
      },
      BatchAppend: {
        request: batchRequest,
        response: batchResponse,
        requestStream: true,
        responseStream: true,
        features: ['deadline_duration'],
        handler: calls.converse<WireBatchRequest, WireBatchResponse>((requests, send, info) =>
          batchAppend(context, requests, send, info),
        ),
      },
      Delete: {
        request: deleteRequest,
        response: deleteResponse,
        handler: calls.unary<WireDeleteRequest, WireDeleteResponse>((request, info) =>
          deleteStream(context, request, info),
        ),
      },
      Tombstone: {
        request: deleteRequest,
        response: deleteResponse,
        handler: calls.unary<WireDeleteRequest, WireDeleteResponse>((request, info) =>
          tombstoneStream(context, request, info),
        ),
      },
    },
  };
}

function streamsV2Service(context: KurrentContext, calls: CallKit): Services {
  return {
    'kurrentdb.protocol.v2.streams.StreamsService': {
      AppendSession: {
        request: sessionRequest,
        response: sessionResponse,
        requestStream: true,
        handler: calls.collect<WireSessionRequest, WireSessionResponse>((requests, info) =>
          appendSession(context, requests, info),
        ),
      },
      AppendRecords: {
        request: recordsRequest,
        response: recordsResponse,
        handler: calls.unary<WireRecordsRequest, WireRecordsResponse>((request, info) =>
          appendRecords(context, request, info),
        ),
      },
    },
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
