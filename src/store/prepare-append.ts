// Validates and encodes an append before anything is written.

import { isEnvelope, validateEnvelope, type DomainEventEnvelope } from '../contracts/envelope.ts';
import {
  eventFormats,
  markHeader,
  writeForm,
  type FormatOptions,
  type Mark,
} from '../contracts/event-form.ts';
import {
  assertJson,
  encodePayload,
  payloadLimits,
  type PayloadOptions,
} from '../contracts/json-payload.ts';
import { nameInvalid, nameLimits } from '../contracts/identifier.ts';
import { isStreamOf } from '../contracts/stream-name.ts';
import { MillraceError } from '../foundation/error.ts';
import { seal, subjectForgotten, subjectHeader, subjectOf } from './erasure.ts';
import { encodeMeta } from './event-meta.ts';
import type { StreamAppend } from './event-store.ts';
import type { SubjectKeys } from './erasure.ts';
import {
  EngineTransaction,
  type RowToWrite,
  type StoreEngine,
  type StreamWrite,
} from './store-engine.ts';
import {
  fromMetadataPayload,
  metadataType,
  streamOfMetadata,
  toRetention,
} from './stream-metadata.ts';

/** Throws `CONFIG_INVALID` for a format that does not exist. */
export function checkFormat({ eventFormat = 'millrace' }: FormatOptions): void {
  if (eventFormats.includes(eventFormat)) return;
  throw new MillraceError(
    'CONFIG_INVALID',
    `Unknown eventFormat "${eventFormat}". Known: ${eventFormats.join(', ')}.`,
    { details: { field: 'eventFormat' } },
  );
}

export const storeLimits = {
  eventsPerAppendMax: 10_000,
  appendBytesMax: 64 * 1_048_576,
  /** A filtered subscription emits a checkpoint after this many events without a match. */
  checkpointEvery: 10_000,
} as const;

// oxlint-disable-next-line no-control-regex -- it matches control characters on purpose
const control = /[\u0000-\u001f\u007f]/;

/** Returns a promise only for personal data: other appends need no await. */
export function prepareAppend(
  append: StreamAppend,
  options: PayloadOptions & FormatOptions & { readonly names?: 'strict' | 'open' | undefined },
  subjectKeys: SubjectKeys,
): StreamWrite | Promise<StreamWrite> {
  const { stream, events, expected = 'any', follows } = append;
  checkStream(stream, options.names);
  checkExpected(expected);
  if (follows !== undefined && (typeof expected !== 'number' || follows === '')) {
    throw appendInvalid(
      stream,
      '`follows` needs an event id and a number as the expected revision',
    );
  }
  if (events.length === 0 || events.length > storeLimits.eventsPerAppendMax) {
    throw appendInvalid(
      stream,
      `an append must have 1 to ${storeLimits.eventsPerAppendMax} events, not ${events.length}`,
    );
  }
  if (options.names !== 'open') for (const event of events) checkEnvelope(stream, event);
  checkDistinct(stream, events);

  let bytes = 0;
  const subjects = new Set<string>();
  // Encode everything before the first await: afterwards the caller may modify the events.
  const rows = events.map((given): RowToWrite => {
    const event = inFormat(given, stream, options.eventFormat);
    const payload = encodePayload(event.payload, options);
    const meta = metaOf(stream, event, options);
    bytes += payload.bytes + meta.length;
    const subject = subjectOf(event);
    if (subject !== undefined) subjects.add(subject);
    const { eventId, type, tenant } = event;
    return { eventId, type, tenant, payload: payload.json, meta };
  });
  const change = metadataChange(stream, events);
  if (bytes > storeLimits.appendBytesMax) {
    throw appendInvalid(
      stream,
      `an append must have at most ${storeLimits.appendBytesMax} bytes, not ${bytes}`,
    );
  }
  const write: StreamWrite = { stream, expected, rows, follows, ...change };
  if (subjects.size === 0) return write;
  const owners = events.map(subjectOf);
  return keysFor(subjects, subjectKeys).then((keys) => ({
    ...write,
    rows: rows.map((row, index) => {
      const key = keys.get(owners[index] ?? '');
      return key?.kind === 'key'
        ? { ...row, payload: seal(row.payload, key.key, row.eventId) }
        : row;
    }),
  }));
}

/** Rejects an empty list of appends, too many events, and duplicate event ids in a stream. */
export function checkTogether(appends: readonly StreamAppend[]): void {
  const [first] = appends;
  if (first === undefined) throw appendInvalid('', 'the list of appends is empty');
  if (appends.length === 1) return;
  const total = appends.reduce((sum, { events }) => sum + events.length, 0);
  if (total > storeLimits.eventsPerAppendMax) {
    throw appendInvalid(
      first.stream,
      `an append must have at most ${storeLimits.eventsPerAppendMax} events over all streams, not ${total}`,
    );
  }
  for (const [stream, parts] of Map.groupBy(appends, (append) => append.stream)) {
    if (parts.length > 1) {
      checkDistinct(
        stream,
        parts.flatMap(({ events }) => events),
      );
    }
  }
}

/** A data subject must be a string that every engine stores unchanged. */
export function checkSubject(subject: unknown): void {
  const fits =
    typeof subject === 'string' &&
    subject !== '' &&
    subject.length <= nameLimits.keyCharsMax &&
    subject.isWellFormed() &&
    !control.test(subject);
  if (fits) return;
  throw nameInvalid(
    'data subject',
    String(subject),
    `must be a string of 1 to ${nameLimits.keyCharsMax} characters without control characters`,
  );
}

export function checkStream(stream: string, names: 'strict' | 'open' | undefined): void {
  const reason =
    typeof stream !== 'string' || stream === ''
      ? 'must not be empty'
      : stream.length > nameLimits.streamCharsMax
        ? `has ${stream.length} characters; the limit is ${nameLimits.streamCharsMax}`
        : control.test(stream) || !stream.isWellFormed()
          ? 'must not contain control characters or lone surrogates'
          : names !== 'open' && stream.startsWith('$')
            ? 'streams that start with $ are reserved for the system'
            : undefined;
  if (reason !== undefined) throw nameInvalid('stream', stream, reason);
}

export function checkExpected(expected: unknown): void {
  const named = expected === 'any' || expected === 'none' || expected === 'exists';
  if (named || (typeof expected === 'number' && Number.isInteger(expected) && expected >= 0))
    return;
  throw new MillraceError(
    'APPEND_INVALID',
    `expected must be a revision of at least 0, 'none', 'exists' or 'any', not ${String(expected)}`,
    { details: { expected } },
  );
}

function checkEnvelope(stream: string, event: DomainEventEnvelope): void {
  if (!isEnvelope(event)) validateEnvelope(event);
  const { tenant } = event;
  // A stream name without a hyphen has no tenant.
  const at = stream.indexOf('-');
  if (at === -1 || stream.startsWith(`${tenant}-`, at + 1)) return;
  throw new MillraceError(
    'TENANT_MISMATCH',
    `an event of tenant '${tenant}' does not belong into stream '${stream}'`,
    { details: { tenant, stream } },
  );
}

function checkDistinct(stream: string, events: readonly DomainEventEnvelope[]): void {
  // Time-ordered ids are ascending, and ascending ids are distinct.
  let isAscending = true;
  let last = '';
  for (const { eventId } of events) {
    // A database stores all lone surrogates as the same character, so two ids could become equal.
    if (!eventId.isWellFormed()) {
      throw appendInvalid(stream, 'an event id contains a lone surrogate');
    }
    isAscending &&= eventId > last;
    last = eventId;
  }
  if (isAscending) return;
  const distinct = new Set<string>();
  for (const { eventId } of events) distinct.add(eventId);
  if (distinct.size < events.length)
    throw appendInvalid(stream, 'two events have the same event id');
}

/**
 * The event with the data and metadata of the format as payload and headers. Events that were written in some form keep
 * it. Events about a person keep Millrace's form, in which only the payload is encrypted, and so do events of another
 * aggregate than their stream, whose envelope a handler would refuse.
 */
function inFormat(
  event: DomainEventEnvelope,
  stream: string,
  format: FormatOptions['eventFormat'] = 'millrace',
): DomainEventEnvelope {
  const isKept = event.headers?.[markHeader] !== undefined || subjectOf(event) !== undefined;
  if (format === 'millrace' || isKept || !isEnvelope(event)) return event;
  if (format === 'envelope' && !isStreamOf(stream, event.tenant, event.aggregate)) return event;
  const { data, metadata } = writeForm(event, format);
  const mark: Mark = { json: true, format };
  return { ...event, payload: data, headers: { ...metadata, [markHeader]: mark } };
}

/** The rest of the envelope; only headers and user have no fixed schema. */
function metaOf(stream: string, event: DomainEventEnvelope, options: PayloadOptions): string {
  const { headers, user } = event;
  if (headers?.[subjectHeader] !== undefined) checkSubject(headers[subjectHeader]);
  if (headers !== undefined || user !== undefined) assertJson({ headers, user }, options);
  const meta = encodeMeta(stream, event);
  // Measure exactly only if the string may exceed the limit.
  const { payloadBytesMax = payloadLimits.payloadBytesMax } = options;
  if (meta.length * 3 > payloadBytesMax) encodePayload({ headers, user }, options);
  return meta;
}

async function keysFor(
  subjects: ReadonlySet<string>,
  subjectKeys: SubjectKeys,
): ReturnType<SubjectKeys['get']> {
  const keys = await subjectKeys.get([...subjects], { create: true });
  for (const [subject, key] of keys) {
    if (key.kind !== 'key') throw subjectForgotten(subject);
  }
  return keys;
}

/** An append of a `$metadata` event to `$$x` changes the retention of `x`. */
function metadataChange(
  stream: string,
  events: readonly DomainEventEnvelope[],
): Pick<StreamWrite, 'retention'> {
  const of = streamOfMetadata(stream);
  const latest = events.at(-1);
  if (of === undefined || latest?.type !== metadataType) return {};
  return { retention: { of, values: toRetention(fromMetadataPayload(latest.payload)) } };
}

function appendInvalid(stream: string, reason: string): MillraceError {
  return new MillraceError('APPEND_INVALID', `append to '${stream}': ${reason}`, {
    details: { stream, reason },
  });
}

export function checkFollowing(
  { capabilities }: StoreEngine,
  appends: readonly StreamAppend[],
): void {
  if (capabilities.followingAppend === true) return;
  if (appends.every(({ follows }) => follows === undefined)) return;
  throw new MillraceError('NOT_SUPPORTED', 'this engine does not support the `follows` option', {
    details: { capability: 'followingAppend' },
  });
}

/** An append outside the given transaction would remain after its rollback. */
export function checkTransaction({ capabilities }: StoreEngine, transaction: unknown): void {
  if (capabilities.callerTransaction || transaction === undefined) return;
  if (transaction instanceof EngineTransaction) return;
  throw new MillraceError('NOT_SUPPORTED', 'this engine cannot append in a transaction', {
    details: { capability: 'callerTransaction' },
  });
}
