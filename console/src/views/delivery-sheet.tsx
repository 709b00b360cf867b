// One message of the outbox: where it goes, each attempt, its payload, and what an operator can do.

import { useQuery } from '@tanstack/react-query';
import { Pause, Play, RotateCw } from 'lucide-react';
import type { OutboxMessage } from '../api.gen.ts';
import { call } from '../lib/api.ts';
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
  FAILED: 'tried again',
  DEAD: 'dead',
};

const statusTones = {
  PENDING: 'neutral',
  CLAIMED: 'accent',
  SENT: 'good',
  FAILED: 'warn',
  DEAD: 'bad',
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
          <Actions actions={replayOf(message)} refresh={['delivery', 'deliveries', 'failures']} />
          {message.lastError === undefined ? null : (
            <p className="mono rounded-md bg-bad-wash px-3 py-2 text-xs break-words text-bad">
              {message.lastError}
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

function MessageFacts({ message }: { readonly message: OutboxMessage }) {
  const { id, status, dueAt, sentAt, tenantId, correlationId, lockedBy } = message;
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

/** Messages that are still retried are sent by themselves. */
function replayOf({ id, status }: OutboxMessage): readonly Action[] {
  if (status !== 'DEAD') return [];
  return [
    {
      route: 'POST /admin/outbox/replay',
      label: 'Replay',
      icon: RotateCw,
      isMain: true,
      run: async () => {
        const { replayed } = await call('POST /admin/outbox/replay', { body: { ids: [id] } });
        return replayed === 1
          ? 'Replay requested. Its idempotency key stays the same.'
          : 'Another operator was faster: the message is no longer dead.';
      },
    },
  ];
}

export function DestinationActions({
  destination,
  isPaused,
}: {
  readonly destination: string;
  readonly isPaused: boolean;
}) {
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
      ]}
    />
  );
}
