// The methods of version 2 of the Streams service.

import type { CallKit } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { Services } from '../services.ts';
import { appendRecords, appendSession } from './append-many.ts';
import type {
  WireRecordsRequest,
  WireRecordsResponse,
  WireSessionRequest,
  WireSessionResponse,
} from './wire-types.ts';

const scope = 'kurrentdb.protocol.v2.streams';

export function streamsV2Service(context: KurrentContext, calls: CallKit): Services {
  return {
    [`${scope}.StreamsService`]: {
      AppendSession: {
        request: `${scope}.AppendRequest`,
        response: `${scope}.AppendSessionResponse`,
        requestStream: true,
        handler: calls.collect<WireSessionRequest, WireSessionResponse>((requests, info) =>
          appendSession(context, requests, info),
        ),
      },
      AppendRecords: {
        request: `${scope}.AppendRecordsRequest`,
        response: `${scope}.AppendRecordsResponse`,
        handler: calls.unary<WireRecordsRequest, WireRecordsResponse>((request, info) =>
          appendRecords(context, request, info),
        ),
      },
    },
  };
}
