// The snapshot of a request with the keys and fields of the requirement document: the hash
// `notification.slack:v1:{core}:message-request:<id>`, `idx:message-request:updated` and `idx:message-request:by-status:<status>`.

import { slackAddressing, Type } from 'millrace/contracts';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { Static } from 'typebox';
import { boundedContext, requestCategory } from './fields.ts';
import type {
  requestCreated,
  requestFailed,
  requestQueued,
  requestSent,
  requestUpdated,
} from './message-request-events.ts';
import { requestStatuses, type RequestStatus } from './message-request.ts';

const text = Type.String();
const optionalText = Type.Optional(text);

export const requestSchema = Type.Object({
  id: text,
  tenant: text,
  workspaceCode: text,
  templateCode: optionalText,
  channelCode: optionalText,
  recipient: optionalText,
  threadTs: optionalText,
  data: Type.Record(Type.String(), Type.Unknown()),
  status: Type.Enum([...requestStatuses]),
  /** Number of its events. */
  version: Type.Integer(),
  createdAt: text,
  updatedAt: text,
  lastStreamRevision: Type.Integer(),
  round: Type.Integer(),
  attempts: Type.Integer(),
  correlationId: text,
  /** Channel and id of the message in Slack. */
  channelId: optionalText,
  ts: optionalText,
  /** Cause of the failure or of the last deferral. */
  code: optionalText,
  reason: optionalText,
});
export type RequestDocument = Readonly<Static<typeof requestSchema>>;

type Payload<Definition extends { parse(payload: unknown): unknown }> = ReturnType<
  Definition['parse']
>;
type Content = Payload<typeof requestCreated>;

const isStatus = (name: string): name is RequestStatus =>
  requestStatuses.some((status) => status === name);

export const requestProjection = projection({
  name: 'sub:slack-requests:message-request-projection:v1',
  readModel: readModel<RequestDocument>({
    bc: boundedContext,
    aggregate: 'message-request',
    version: 1,
    layout: {
      document: slackAddressing.snapshot,
      set: (tenant, set) =>
        isStatus(set) ? slackAddressing.indexByStatus(tenant, set) : undefined,
      range: (tenant, range) =>
        range === 'updated' ? slackAddressing.indexUpdated(tenant) : undefined,
      jsonFields: ['data', 'version', 'lastStreamRevision', 'round', 'attempts'],
    },
    sets: Object.fromEntries(
      requestStatuses.map((status) => [status, (each: RequestDocument) => each.status === status]),
    ),
    ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
    groups: { status: ({ status, createdAt }) => ({ [status]: Date.parse(createdAt) }) },
  }),
  filter: { category: requestCategory },
  on: {
    'message-request.created.v1': (_before, event: ProjectedEvent<Content>) =>
      stamped(
        {
          ...contentOf(event.payload),
          id: event.aggregate.id,
          tenant: event.tenant,
          status: 'created',
          createdAt: event.occurredAt,
          round: 0,
          attempts: 0,
          correlationId: event.correlationId,
        },
        event,
      ),
    'message-request.updated.v1': (before, event: ProjectedEvent<Payload<typeof requestUpdated>>) =>
      before === null ? null : stamped(updated(before, event.payload), event),
    'message-request.queued.v1': (before, event: ProjectedEvent<Payload<typeof requestQueued>>) =>
      before === null
        ? null
        : stamped(
            {
              ...without(before, 'code', 'reason'),
              status: 'queued',
              round: event.payload.round,
              attempts: 0,
            },
            event,
          ),
    'message-request.sent.v1': (before, event: ProjectedEvent<Payload<typeof requestSent>>) =>
      before === null
        ? null
        : stamped(
            { ...without(before, 'code', 'reason'), ...event.payload, status: 'sent' },
            event,
          ),
    'message-request.failed.v1': (before, event: ProjectedEvent<Payload<typeof requestFailed>>) => {
      if (before === null) return null;
      const { code, reason } = event.payload;
      const why = reason === undefined ? { code } : { code, reason };
      return stamped({ ...before, ...why, status: 'failed' }, event);
    },
  },
});

type Unstamped = Omit<RequestDocument, 'lastStreamRevision' | 'updatedAt' | 'version'>;

function stamped(document: Unstamped, { revision, occurredAt }: ProjectedEvent): RequestDocument {
  return {
    ...document,
    updatedAt: occurredAt,
    version: revision + 1,
    lastStreamRevision: revision,
  };
}

function updated(before: RequestDocument, update: Payload<typeof requestUpdated>): Unstamped {
  if (update.change === 'attempt') return { ...before, attempts: update.attempt };
  if (update.change === 'deferred') return { ...before, code: update.code };
  const unchanged = without(before, 'templateCode', 'channelCode', 'recipient', 'threadTs');
  return { ...unchanged, ...contentOf(update) };
}

function contentOf({
  workspaceCode,
  templateCode,
  channelCode,
  recipient,
  data,
  threadTs,
}: Content) {
  return {
    workspaceCode,
    ...(templateCode === undefined ? {} : { templateCode }),
    ...(channelCode === undefined ? {} : { channelCode }),
    ...(recipient === undefined ? {} : { recipient }),
    ...(threadTs === undefined ? {} : { threadTs }),
    data,
  };
}

function without<Name extends keyof RequestDocument>(
  document: RequestDocument,
  ...names: readonly Name[]
): Omit<RequestDocument, Name> {
  const entries = Object.entries(document).filter(([name]) => !names.some((each) => each === name));
  return Object.fromEntries(entries) as Omit<RequestDocument, Name>;
}
