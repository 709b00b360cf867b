// Handles the calls Streams/Delete and Streams/Tombstone.

import { versionConflict } from '../../../store/expected-revision.ts';
import { toSequence } from '../../../store/position.ts';
import { metadataStream, tombstoneType } from '../../../store/stream-metadata.ts';
import type { CallInfo } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { empty } from '../protocol/shared-messages.ts';
import type { WireDeleteRequest, WireDeleteResponse } from '../protocol/streams-messages.ts';
import { badRequest } from '../rpc-error.ts';
import { expectedOf } from './expected.ts';
import { streamNameOf } from './stream-name.ts';

export async function deleteStream(
  context: KurrentContext,
  request: WireDeleteRequest,
  info: CallInfo,
): Promise<WireDeleteResponse> {
  const { stream, expected } = await targetOf(context, request, info);
  // Clients of KurrentDB get a conflict, and a deletion must not create the stream.
  if (((await context.store.streamInfo(stream))?.revision ?? -1) < 0) {
    throw versionConflict({ stream, expected }, -1);
  }
  await audited(context, { action: 'stream.delete', target: stream }, info, () =>
    context.store.deleteStream(stream, { expected, keepsMetadata: false }),
  );
  const written = context.store.readStream(metadataStream(stream), {
    direction: 'backwards',
    limit: 1,
  });
  return positionOf(await written.toArray());
}

export async function tombstoneStream(
  context: KurrentContext,
  request: WireDeleteRequest,
  info: CallInfo,
): Promise<WireDeleteResponse> {
  const { stream, expected } = await targetOf(context, request, info);
  await audited(context, { action: 'stream.tombstone', target: stream }, info, () =>
    context.store.tombstoneStream(stream, { expected }),
  );
  // A tombstoned stream cannot be read, so its last event is found through all events.
  const filter = { types: [tombstoneType], streamPrefixes: [stream], system: true };
  for await (const event of context.store.readAll({ direction: 'backwards', filter })) {
    if (event.stream === stream) return positionOf([event]);
  }
  return { noPosition: empty };
}

async function audited(
  { audit }: KurrentContext,
  what: { readonly action: string; readonly target: string },
  { identity, peer: address }: CallInfo,
  work: () => Promise<unknown>,
): Promise<void> {
  const { name, tenant } = identity;
  const actor = {
    kind: name === undefined ? 'anonymous' : 'token',
    name: name ?? '',
    address,
    ...(tenant === undefined ? {} : { tenant }),
  };
  await (audit === undefined ? work() : audit.run({ ...what, actor }, work));
}

async function targetOf(
  context: KurrentContext,
  { options }: WireDeleteRequest,
  { identity }: CallInfo,
): Promise<{ stream: string; expected: ReturnType<typeof expectedOf> }> {
  if (options === undefined) throw badRequest('the request has no options');
  const stream = streamNameOf(options.streamIdentifier);
  await context.access.check(identity, stream, 'delete');
  return { stream, expected: expectedOf(options, options.revision) };
}

function positionOf(
  events: readonly { readonly position: Parameters<typeof toSequence>[0] }[],
): WireDeleteResponse {
  const [event] = events;
  if (event === undefined) return { noPosition: empty };
  const sequence = toSequence(event.position);
  return { position: { commitPosition: sequence, preparePosition: sequence } };
}
