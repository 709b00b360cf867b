// The official client reads through a bridge that sends the head and the body of a call as two
// packets, the second when the first is acknowledged, which a kernel does 40 ms late unless it has
// something to send. So it gets something: the answer's headers, as soon as the call's are there.

import type * as GrpcJs from '@grpc/grpc-js';

/** An error still comes as trailers; headers that were sent are not sent again. */
export function earlyHeaders(grpc: typeof GrpcJs): GrpcJs.ServerInterceptor {
  return (_method, call) =>
    new grpc.ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, go) {
            call.sendMetadata(new grpc.Metadata());
            go(metadata);
          },
        }),
    });
}
