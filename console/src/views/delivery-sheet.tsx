// One message of the outbox: where it goes, each attempt, its payload, and what an operator can do.

import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { FastForward, Pause, Play, RotateCw, Send, Trash2 } from 'lucide-react';
import type { OutboxMessage } from '../api.gen.ts';
import { call, type ResponseOf } from '../lib/api.ts';
import { poll } from '../lib/list.ts';
import { Actions, type Action } from '../ui/actions.tsx';
import { DeliveryAttempts } from '../ui/delivery-attempts.tsx';
import { JsonView } from '../ui/json-view.tsx';
import { Badge, CopyButton, Fact, Facts, Part, StreamLink, Time, TraceLink } from '../ui/parts.tsx';
import { DetailSheet } from '../ui/sheet.tsx';

type Status = OutboxMessage['status'];

export const statusTitles: Readonly<Record<Status, string>> = {
  PENDING: 'pending',
  CLAIMED: 'sending',
  SENT: 'sent',
  FAILED: 'retrying',
  DEAD: 'dead',
  DISCARDED: 'discarded',
};

const statusTones = {
  PENDING: 'neutral',
  CLAIMED: 'accent',
  SENT: 'good',
  FAILED: 'warn',
  DEAD: 'bad',
  DISCARDED: 'neutral',
} as const;

export function StatusBadge({ status }: { readonly status: Status }) {
  return <Badge tone={statusTones[status]}>{statusTitles[status]}</Badge>;
}

export function DeliverySheet({
  id = '',
  onClose,
}: {
  readonly id: string | undefined;
  readonly onClose: () => void;
}) {
  const query = useQuery({
    queryKey: ['delivery', id],
    queryFn: ({ signal }) => call('GET /admin/outbox/{id}', { params: { id }, signal }),
    enabled: id !== '',
    refetchInterval: poll,
  });
  return (
    <DetailSheet
      id={id}
      title={query.data?.integrationType ?? 'Delivery'}
      query={query}
      onClose={onClose}
      gone="No message has this id. Sent messages are deleted after their retention, 7 days by default."
    >
      {(message) => (
        <>
          <MessageActions message={message} />
          {currentError(message) === undefined ? null : (
            <p className="mono rounded-md bg-bad-wash px-3 py-2 text-xs break-words text-bad">
              {currentError(message)}
            </p>
          )}
          <MessageFacts message={message} />
          <Part title="Attempts">
            <DeliveryAttempts id={message.id} />
          </Part>
          <Part title="Payload">
            <JsonView value={message.payload} label="the payload" />
          </Part>
          {message.headers === undefined ? null : (
            <Part title="Headers">
              <JsonView value={message.headers} label="the headers" />
            </Part>
          )}
        </>
      )}
    </DetailSheet>
  );
}

/** The attempts before a message was sent are in its details. */
export const currentError = ({ status, lastError }: OutboxMessage): string | undefined =>
  status === 'SENT' ? undefined : lastError;

function MessageFacts({ message }: { readonly message: OutboxMessage }) {
  const { id, status, dueAt, sentAt, tenantId, correlationId, lockedBy, discarded } = message;
  const isTried = status === 'PENDING' || status === 'FAILED';
  return (
    <Facts>
      <Fact name="Status">
        <StatusBadge status={status} />
        {isTried ? (
          <span className="text-soft">
            next attempt <Time at={dueAt} />
          </span>
        ) : null}
      </Fact>
      <Fact name="Attempts">
        {message.attempts} of {message.maxAttempts} failed
      </Fact>
      <Fact name="Event">
        <span className="mono break-all">{message.eventType}</span>
      </Fact>
      <Fact name="Stream">
        <StreamLink stream={message.sourceStreamId} />
      </Fact>
      <Fact name="Tenant">{tenantId ?? '–'}</Fact>
      {correlationId === undefined ? null : (
        <Fact name="Trace">
          <TraceLink id={correlationId} />
        </Fact>
      )}
      <Fact name="Created">
        <Time at={message.createdAt} />
      </Fact>
      {sentAt === undefined ? null : (
        <Fact name="Sent">
          <Time at={sentAt} />
        </Fact>
      )}
      {discarded === undefined ? null : (
        <Fact name="Discarded">
          <span className="break-words">
            by {discarded.by}, <Time at={message.updatedAt} />: {discarded.reason}
          </span>
        </Fact>
      )}
      {lockedBy === undefined ? null : (
        <Fact name="Process">
          <span className="mono break-all">{lockedBy}</span>
        </Fact>
      )}
      <Fact name="Id">
        <span className="mono break-all">{id}</span>
        <CopyButton text={id} label="Copy the id" />
      </Fact>
    </Facts>
  );
}

type Change = ResponseOf<'POST /admin/outbox/retry'>;

/** What happened to the only message of a change. */
function outcomeText({ items: [item] }: Change, changed: string): string {
  if (item === undefined) return 'The message no longer exists.';
  if (item.outcome === 'changed') return changed;
  return item.outcome === 'claimed'
    ? 'An attempt is running, so the message was left alone. Try again when it has ended.'
    : `Nothing to change: the message is ${item.status === 'FAILED' || item.status === 'PENDING' ? 'due' : statusTitles[item.status]}.`;
}

export function MessageActions({
  message: { id, status, dueAt },
  isInRow = false,
}: {
  readonly message: OutboxMessage;
  readonly isInRow?: boolean;
}) {
  const waits = status === 'PENDING' || status === 'FAILED';
  const replay: Action = {
    route: 'POST /admin/outbox/replay',
    label: 'Replay',
    icon: RotateCw,
    isMain: !isInRow,
    run: async () => {
      const { replayed } = await call('POST /admin/outbox/replay', { body: { ids: [id] } });
      return replayed === 1
        ? 'Replay requested. Its idempotency key stays the same.'
        : 'Another operator was faster: the message is no longer dead.';
    },
  };
  const retry: Action = {
    route: 'POST /admin/outbox/retry',
    label: 'Retry now',
    icon: FastForward,
    isMain: !isInRow,
    run: async () =>
      outcomeText(
        await call('POST /admin/outbox/retry', { body: { ids: [id] } }),
        'Due now. Attempts and idempotency key stay the same.',
      ),
  };
  const discard: Action = {
    route: 'POST /admin/outbox/discard',
    label: 'Discard',
    icon: Trash2,
    confirm:
      'The message is never sent. The next message of its ordering key continues. This cannot be undone.',
    asks: 'Reason, stored with the message',
    run: async (reason) =>
      outcomeText(
        await call('POST /admin/outbox/discard', { body: { ids: [id], reason } }),
        'Discarded.',
      ),
  };
  const actions = [
    ...(status === 'DEAD' ? [replay] : []),
    ...(waits && Date.parse(dueAt) > Date.now() ? [retry] : []),
    ...(waits || status === 'DEAD' ? [discard] : []),
  ];
  return (
    <Actions actions={actions} isInRow={isInRow} refresh={['delivery', 'deliveries', 'failures']} />
  );
}

export function DestinationActions({
  destination,
  isPaused,
}: {
  readonly destination: string;
  readonly isPaused: boolean;
}) {
  const navigate = useNavigate();
  const verb = isPaused ? 'resume' : 'pause';
  const route = `POST /admin/outbox/${verb}` as const;
  return (
    <Actions
      isInRow
      refresh={['destinations', 'overview']}
      actions={[
        {
          route,
          label: isPaused ? 'Resume' : 'Pause',
          icon: isPaused ? Play : Pause,
          run: async () => {
            const { paused } = await call(route, { body: { destination } });
            return paused ? 'Paused. New messages wait.' : 'Resumed.';
          },
        },
        {
          route: 'POST /admin/destinations/test',
          label: 'Send a test',
          icon: Send,
          confirm: `${destination} receives one message of the type millrace.test.v1, now. It is not retried.`,
          run: async () => {
            const { id } = await call('POST /admin/destinations/test', { body: { destination } });
            await navigate({ to: '/deliveries', search: { open: id } });
            return 'The test message is in the outbox.';
          },
        },
      ]}
    />
  );
}
