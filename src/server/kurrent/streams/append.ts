// Streams/Append: a request with options, one request per event, then one response.

import { hasCode } from '../../../foundation/error.ts';
import { countAppend } from '../append-bytes.ts';
import type { CallInfo } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { bytesOf, readProposed, type ForeignEvent } from '../events/from-wire.ts';
import { empty } from '../protocol/shared-messages.ts';
import type {
  WireAppendRequest,
  WireAppendResponse,
  WireAppendSuccess,
} from '../protocol/streams-messages.ts';
import { badRequest, RpcError } from '../rpc-error.ts';
import { tooLarge } from '../to-rpc-error.ts';
import { appendForeign, type Appended } from './append-events.ts';
import { expectedOf, wrongVersion } from './expected.ts';
import { streamNameOf } from './stream-name.ts';

export async function append(
  context: KurrentContext,
  requests: AsyncIterable<WireAppendRequest>,
  { identity }: CallInfo,
): Promise<WireAppendResponse> {
  const { appendBytesMax } = context.limits;
  let target: { stream: string; expected: ReturnType<typeof expectedOf> } | undefined;
  const events: ForeignEvent[] = [];
  let bytes = 0;
  using counted = countAppend(context);
  for await (const { options, proposedMessage } of requests) {
    if (options !== undefined) {
      const stream = streamNameOf(options.streamIdentifier);
      await context.access.check(identity, stream, 'append');
      target = { stream, expected: expectedOf(options, options.revision) };
    } else if (proposedMessage !== undefined) {
      const event = readProposed(proposedMessage);
      bytes += bytesOf(event);
      if (bytes > appendBytesMax) throw appendTooLarge(appendBytesMax);
      counted.take(bytesOf(event));
      events.push(event);
    }
  }
  if (target === undefined) throw badRequest('the append has no options');
  counted.run();
  try {
    return { success: toSuccess(await appendForeign(context, { ...target, identity, events })) };
  } catch (error) {
    if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
    const actual = Number(error.details['actual'] ?? -1);
    return { wrongExpectedVersion: wrongVersion(target.expected, actual) };
  }
}

export function appendTooLarge(appendBytesMax: number): RpcError {
  return new RpcError(
    `Maximum Append Size of ${appendBytesMax} Exceeded.`,
    tooLarge(appendBytesMax),
  );
}

export function toSuccess({ revision, sequence }: Appended): WireAppendSuccess {
  return {
    ...(revision < 0 ? { noStream: empty } : { currentRevision: revision }),
    position: { commitPosition: sequence, preparePosition: sequence },
  };
}
