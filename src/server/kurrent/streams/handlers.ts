// The methods of the Streams service.

import type { CallKit } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
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
} from '../protocol/streams-messages.ts';
import type { Services } from '../services.ts';
import { append } from './append.ts';
import { batchAppend } from './batch-append.ts';
import { deleteStream, tombstoneStream } from './delete.ts';
import { read } from './read.ts';

export function streamsService(context: KurrentContext, calls: CallKit): Services {
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
