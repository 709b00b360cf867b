// PersistentSubscriptions/Read: the client sends options, then acknowledgements; the server sends messages.

import { createIds } from '../../../foundation/ids.ts';
import { whenAborted } from '../../../foundation/async/when-aborted.ts';
import type { CallInfo, Requests, Send } from '../calls.ts';
import { hidesFrom, type KurrentContext } from '../context.ts';
import { toWireEvent } from '../events/to-wire.ts';
import { badRequest, shuttingDown } from '../rpc-error.ts';
import { uuidText } from '../uuid.ts';
import type { NackAction } from './group-core.ts';
import type { Group } from './group.ts';
import type { Groups } from './groups.ts';
import type {
  WireGroupReadRequest,
  WireGroupReadResponse,
  WireGroup,
} from '../protocol/persistent-messages.ts';
import { streamNameOf } from '../streams/stream-name.ts';
import { keyText, type GroupKey } from './group-records.ts';

const ids = createIds();
/** The maximum number of unacknowledged messages of a consumer. */
const bufferMax = 10_000;
const actions: readonly NackAction[] = ['retry', 'park', 'retry', 'skip', 'stop'];

export async function readGroup(
  context: KurrentContext,
  groups: Groups,
  requests: Requests<WireGroupReadRequest>,
  send: Send<WireGroupReadResponse>,
  info: CallInfo,
): Promise<void> {
  await groups.lead();
  const id = ids.next();
  let group: Group | undefined;
  let isOver = false;
  let end: (error: Error) => void = () => undefined;
  const dropped = new Promise<never>((_resolve, reject) => (end = reject));
  const release = context.subscriptions.acquire();

  const connect = async (options: NonNullable<WireGroupReadRequest['options']>): Promise<void> => {
    const key = keyOf(options);
    await context.access.checkGroup(info.identity, key.source, 'read');
    if (isOver) return;
    const found = groups.get(key);
    const hide = hidesFrom(context, info.identity);
    const wire = { structuredIds: options.uuidOption?.structured !== undefined, hide };
    // Clients expect the confirmation before the first message.
    const subscriptionId = keyText(key);
    let confirmed = false;
    const confirm = (): void => {
      if (!confirmed) void send({ subscriptionConfirmation: { subscriptionId } });
      confirmed = true;
    };
    found.connect({
      id,
      bufferSize: Math.min(options.bufferSize, bufferMax),
      peer: info.peer,
      user: info.identity.name ?? '',
      connectionName: info.connectionName,
      send(message, retryCount) {
        confirm();
        return send({ event: { ...toWireEvent(message, wire), retryCount } });
      },
      drop: end,
    });
    confirm();
    group = found;
  };

  const settle = (request: WireGroupReadRequest): void => {
    if (request.ack !== undefined) group?.ack(id, request.ack.ids.map(uuidText));
    if (request.nack === undefined) return;
    const { ids: nacked, action, reason } = request.nack;
    group?.nack(id, nacked.map(uuidText), actions[action] ?? 'retry', reason);
  };

  requests.listen((request) => {
    try {
      if (group !== undefined) settle(request);
      else if (request.options === undefined)
        throw badRequest('the first message must be the options');
      else {
        requests.pause();
        connect(request.options).then(() => requests.resume(), end);
      }
    } catch (error) {
      end(error instanceof Error ? error : new Error(String(error)));
    }
  });
  using stop = whenAborted(context.stopping);
  try {
    await Promise.race([requests.ended, dropped, stop.aborted]);
    if (context.stopping.aborted) throw shuttingDown();
  } finally {
    isOver = true;
    release();
    requests.pause();
    group?.disconnect(id);
  }
}

export function keyOf({ all, streamIdentifier, groupName }: WireGroup): GroupKey {
  if (groupName === '') throw badRequest('the group has no name');
  return { source: all === undefined ? streamNameOf(streamIdentifier) : '$all', group: groupName };
}
