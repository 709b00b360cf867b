// The methods of version 2 of the Streams service.

import type { CallKit } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { Services } from '../services.ts';
import { appendRecords, appendSession } from './append-many.ts';
import {
  recordsRequest,
  recordsResponse,
  sessionRequest,
  sessionResponse,
  type WireRecordsRequest,
  type WireRecordsResponse,
  type WireSessionRequest,
  type WireSessionResponse,
} from '../protocol/streams-v2-messages.ts';

export function streamsV2Service(context: KurrentContext, calls: CallKit): Services {
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
