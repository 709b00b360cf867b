// The table of all methods of the server.

import type * as GrpcJs from '@grpc/grpc-js';
import type { CallKit, Method } from './calls.ts';
import type { KurrentContext } from './context.ts';
import type { Protocol } from './protocol/load-protocol.ts';
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
} from './protocol/streams-v2-messages.ts';

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
        ...calls.serve('read', readRequest, readResponse, (request, send, info) =>
          read(context, request, send, info),
        ),
        features: ['position', 'events'],
      },
      Append: calls.collect('append', appendRequest, appendResponse, (requests, info) =>
        append(context, requests, info),
      ),
      BatchAppend: {
        ...calls.converse('append', batchRequest, batchResponse, (requests, send, info) =>
          batchAppend(context, requests, send, info),
        ),
        features: ['deadline_duration'],
      },
      Delete: calls.unary('delete', deleteRequest, deleteResponse, (request, info) =>
        deleteStream(context, request, info),
      ),
      Tombstone: calls.unary('delete', deleteRequest, deleteResponse, (request, info) =>
        tombstoneStream(context, request, info),
      ),
    },
    'kurrentdb.protocol.v2.streams.StreamsService': {
      AppendSession: calls.collect('append', sessionRequest, sessionResponse, (requests, info) =>
        appendSession(context, requests, info),
      ),
      AppendRecords: calls.unary('append', recordsRequest, recordsResponse, (request, info) =>
        appendRecords(context, request, info),
      ),
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
