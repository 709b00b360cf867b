// The methods of the Streams service.

import type { CallKit } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type {
  WireAppendRequest,
  WireAppendResponse,
  WireBatchRequest,
  WireBatchResponse,
  WireDeleteRequest,
  WireDeleteResponse,
  WireReadRequest,
  WireReadResponse,
} from '../protocol/wire-types.ts';
import type { Services } from '../services.ts';
import { append } from './append.ts';
import { batchAppend } from './batch-append.ts';
import { deleteStream, tombstoneStream } from './delete.ts';
import { read } from './read.ts';

const scope = 'event_store.client.streams';

export function streamsService(context: KurrentContext, calls: CallKit): Services {
  return {
    [`${scope}.Streams`]: {
      Read: {
        request: `${scope}.ReadReq`,
        response: `${scope}.ReadResp`,
        responseStream: true,
        features: ['position', 'events'],
        handler: calls.serve<WireReadRequest, WireReadResponse>((request, send, info) =>
          read(context, request, send, info),
        ),
      },
      Append: {
        request: `${scope}.AppendReq`,
        response: `${scope}.AppendResp`,
        requestStream: true,
        handler: calls.collect<WireAppendRequest, WireAppendResponse>((requests, info) =>
          append(context, requests, info),
        ),
      },
      BatchAppend: {
        request: `${scope}.BatchAppendReq`,
        response: `${scope}.BatchAppendResp`,
        requestStream: true,
        responseStream: true,
        features: ['deadline_duration'],
        handler: calls.converse<WireBatchRequest, WireBatchResponse>((requests, send, info) =>
          batchAppend(context, requests, send, info),
        ),
      },
      Delete: {
        request: `${scope}.DeleteReq`,
        response: `${scope}.DeleteResp`,
        handler: calls.unary<WireDeleteRequest, WireDeleteResponse>((request, info) =>
          deleteStream(context, request, info),
        ),
      },
      Tombstone: {
        request: `${scope}.DeleteReq`,
        response: `${scope}.DeleteResp`,
        handler: calls.unary<WireDeleteRequest, WireDeleteResponse>((request, info) =>
          tombstoneStream(context, request, info),
        ),
      },
    },
  };
}
