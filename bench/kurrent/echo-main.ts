// The limit: a gRPC server on the same library that responds to appends and reads with prepared messages. The server
// stores and decides nothing, and reads from a request only the fields that the response needs.

import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  MethodDefinition,
  ServerWritableStream,
} from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { earlyHeaders } from '../../src/server/kurrent/start-kurrent-server.ts';
import { loadProtocol, type Protocol } from '../../src/server/kurrent/protocol/load-protocol.ts';
import * as messages from '../../src/server/kurrent/protocol/streams-messages.ts';
import { supportedMethodsResponse } from '../../src/server/kurrent/server-info.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { ServedInput, ServedMessage } from './served.ts';
import { openJournal } from './journal.ts';
import { sampleData } from './sample-events.ts';

const { eventsPerStream, isSynced, file } = childInput() as ServedInput;
const protocol = await loadProtocol();
const { grpc } = protocol;

const features = protocol.codec(supportedMethodsResponse).encode({
  methods: [
    { methodName: 'batchappend', serviceName: 'event_store.client.streams.Streams', features: [] },
    { methodName: 'read', serviceName: 'event_store.client.streams.Streams', features: [] },
  ],
  eventStoreServerVersion: '25.1.0',
});
const events = Array.from({ length: eventsPerStream }, (_, index) => cannedEvent(protocol, index));
const confirmation = protocol
  .codec(messages.readResponse)
  .encode({ confirmation: { subscriptionId: 'echo' } });
const batchRequest = protocol.codec(messages.batchRequest);
const batchResponse = protocol.codec(messages.batchResponse);
const readRequest = protocol.codec(messages.readRequest);

const journal = isSynced === true ? await openJournal(`${file}.journal`) : undefined;
const asIs = (bytes: Buffer): Buffer => bytes;
const server = new grpc.Server({
  'grpc.max_receive_message_length': 17 * 1_048_576,
  // Millrace's server has this setting; without it, the client's bridge would wait 40 ms for every call.
  interceptors: [earlyHeaders(grpc)],
});

server.addService(
  {
    getSupportedMethods: method(
      'event_store.client.server_features.ServerFeatures',
      'GetSupportedMethods',
    ),
  },
  {
    getSupportedMethods: ((_call, reply) => reply(null, features)) as handleUnaryCall<
      Buffer,
      Buffer
    >,
  },
);
server.addService(
  {
    batchAppend: method('event_store.client.streams.Streams', 'BatchAppend', {
      requestStream: true,
      responseStream: true,
    }),
    read: method('event_store.client.streams.Streams', 'Read', { responseStream: true }),
  },
  {
    batchAppend: ((call) => {
      call.on('data', (bytes: Buffer) => {
        const { correlationId, isFinal } = batchRequest.decode(bytes);
        if (!isFinal) return;
        const success = { currentRevision: 0, position: { commitPosition: 1, preparePosition: 1 } };
        const reply = batchResponse.encode({ correlationId, success });
        if (journal === undefined) call.write(reply);
        else void journal(bytes).then(() => call.write(reply));
      });
      call.on('end', () => call.end());
    }) as handleBidiStreamingCall<Buffer, Buffer>,
    read: ((call) => {
      const { options } = readRequest.decode(call.request);
      const isLive = options?.subscription !== undefined;
      if (isLive) call.write(confirmation);
      void sendAll(call, isLive);
    }) as handleServerStreamingCall<Buffer, Buffer>,
  },
);

/** A read ends; a subscription repeats its events until it is cancelled. */
async function sendAll(call: ServerWritableStream<Buffer, Buffer>, isLive: boolean): Promise<void> {
  do {
    for (const bytes of events) {
      if (call.cancelled) return;
      if (!call.write(bytes)) {
        await new Promise<void>((resolve) => {
          call.once('drain', resolve);
          call.once('cancelled', resolve);
        });
      }
    }
  } while (isLive);
  call.end();
}

function method(
  service: string,
  name: string,
  streams: { readonly requestStream?: boolean; readonly responseStream?: boolean } = {},
): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/${service}/${name}`,
    requestStream: streams.requestStream ?? false,
    responseStream: streams.responseStream ?? false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

function cannedEvent(from: Protocol, index: number): Buffer {
  const position = { commitPosition: index + 1, preparePosition: index + 1 };
  return from.codec(messages.readResponse).encode({
    event: {
      event: {
        id: { string: randomUUID() },
        streamIdentifier: { streamName: Buffer.from('bench-1') },
        streamRevision: index,
        ...position,
        metadata: {
          type: 'Happened',
          'content-type': 'application/json',
          created: String(Date.now() * 10_000),
        },
        customMetadata: Buffer.alloc(0),
        data: Buffer.from(JSON.stringify(sampleData(index))),
      },
      commitPosition: index + 1,
    },
  });
}

server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  tellParent({ kind: 'listening', port } satisfies ServedMessage);
});
