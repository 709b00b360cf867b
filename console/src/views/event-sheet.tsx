// One event: where it came from, what it contains, and where to go from it.

import { useQuery } from '@tanstack/react-query';
import { call } from '../lib/api.ts';
import type { LiveEvent } from '../lib/live.ts';
import { allows, useSession } from '../lib/session.ts';
import { eventCommands } from '../lib/shell-commands.ts';
import { CopyAs } from '../ui/copy-as.tsx';
import { ExplainLink } from '../ui/explain-link.tsx';
import { CopyButton, Fact, Facts, StreamLink, Time, TraceLink } from '../ui/parts.tsx';
import { JsonView } from '../ui/json-view.tsx';
import { Sheet } from '../ui/sheet.tsx';
import { Failed, Loading, NotFound } from '../ui/states.tsx';

/** Where an event is: in the address, so anyone may have typed it. */
export interface EventPlace {
  readonly stream: string;
  readonly revision: string;
}

export function EventSheet({
  place,
  listed,
  isListed,
  onClose,
}: {
  /** Undefined: closed. */
  readonly place: EventPlace | undefined;
  /** The event, if the list contains it. */
  readonly listed: LiveEvent | undefined;
  /** The list is loaded: an event that it does not contain is read by itself. */
  readonly isListed: boolean;
  readonly onClose: () => void;
}) {
  const { stream = '', revision = '' } = place ?? {};
  const from = /^\d{1,15}$/.test(revision) ? Number(revision) : undefined;
  const { data, error, refetch } = useQuery({
    queryKey: ['event', stream, from],
    queryFn: async ({ signal }) => {
      const { items } = await call('GET /api/v1/streams/{stream}/events', {
        params: { stream },
        query: { from, limit: 1 },
        signal,
      });
      return items.find((event) => event.revision === from) ?? null;
    },
    enabled: place !== undefined && from !== undefined && listed === undefined && isListed,
  });
  const event = listed ?? data ?? undefined;
  return (
    <Sheet
      isOpen={place !== undefined}
      onClose={onClose}
      title={<span className="mono">{event?.type ?? 'Event'}</span>}
    >
      {place === undefined ? null : event !== undefined ? (
        <EventDetail event={event} />
      ) : error !== null ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : from === undefined ? (
        <NotFound title="Not a revision">
          “{revision}” is not the revision of an event: 0, 1, 2 and so on.
        </NotFound>
      ) : data === null ? (
        <NotFound title="No such event">
          The stream “{stream}” has no event with the revision {from}, or the event was removed.
        </NotFound>
      ) : (
        <Loading />
      )}
    </Sheet>
  );
}

function EventDetail({ event }: { readonly event: LiveEvent }) {
  const maySeeTraces = allows(useSession(), 'GET /admin/traces/{correlationId}');
  const { headers = {}, correlationId, causationId, idempotencyKey } = event;
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-2">
        <ExplainLink id={correlationId} node={`event ${event.position}`} />
        <CopyAs commands={eventCommands(event)} />
      </div>
      <Facts>
        <Fact name="Stream">
          <StreamLink stream={event.stream} />
        </Fact>
        <Fact name="Revision">
          <span className="mono">{event.revision}</span>
        </Fact>
        <Fact name="Tenant">{event.tenant}</Fact>
        <Fact name="Recorded">
          <Time at={event.recordedAt} />
        </Fact>
        <Fact name="Occurred">
          <Time at={event.occurredAt} />
        </Fact>
        <Id name="Event id" id={event.eventId} />
        <Fact name="Correlation">
          {maySeeTraces ? (
            <TraceLink id={correlationId} />
          ) : (
            <span className="mono break-all">{correlationId}</span>
          )}
          <CopyButton text={correlationId} label="Copy the correlation id" />
        </Fact>
        {causationId === undefined ? null : <Id name="Caused by" id={causationId} />}
        {idempotencyKey === undefined ? null : <Id name="Idempotency key" id={idempotencyKey} />}
        <Id name="Position" id={event.position} />
      </Facts>
      <section className="flex flex-col gap-2">
        <h3 className="text-xs font-semibold">Payload</h3>
        <JsonView key={event.position} value={event.payload} label="payload" />
      </section>
      {Object.keys(headers).length === 0 ? null : (
        <section className="flex flex-col gap-2">
          <h3 className="text-xs font-semibold">Headers</h3>
          <JsonView key={event.position} value={headers} label="headers" />
        </section>
      )}
    </div>
  );
}

function Id({ name, id }: { readonly name: string; readonly id: string }) {
  return (
    <Fact name={name}>
      <span className="mono break-all">{id}</span>
      <CopyButton text={id} label={`Copy: ${name}`} />
    </Fact>
  );
}
