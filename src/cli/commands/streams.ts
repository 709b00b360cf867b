// `millrace stream …`: reads, appends to, follows and deletes streams of the event store.

import { parseStreamName, type ParsedStreamName } from '../../contracts/stream-name.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { StreamInfo, StreamMetadata } from '../../store/event-store.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import {
  defineCommand,
  exitCodes,
  optionalArgument,
  usage,
  type Command,
  type CommandContext,
} from '../command.ts';
import {
  checkConfirmed,
  defined,
  durationMs,
  eventFilterOf,
  eventFilterOptions,
  expectedRevision,
  flag,
  option,
  pairs,
  repeatable,
  nonNegativeInteger,
} from '../options.ts';
import { openExistingStore, openStore, storeOption } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { fieldLines, printable } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

const oneStream = 'stream, such as banking.currency.v1-core-USD';

const expectedOption = {
  expected: option('revision', 'fails unless this is the revision of the last event'),
};

const streamRead = defineCommand({
  name: 'stream read',
  summary: "shows a stream's events (NDJSON with --json)",
  usage: '<stream> [--from <revision>] [--backwards] [--limit <N>]',
  options: {
    ...storeOption,
    from: option(
      'revision',
      'first revision to show (default: the first event, or the last with --backwards)',
    ),
    backwards: flag('newest events first'),
    limit: option('N', 'maximum number of events'),
  },
  examples: [
    'millrace stream read banking.currency.v1-core-USD',
    'millrace stream read banking.currency.v1-core-USD --backwards --limit 1 --json',
  ],
  argument: oneStream,
  async run(context) {
    const { values, argument: stream, stdout, stderr, signal, paint } = context;
    const from = nonNegativeInteger('from', values.from);
    const limit = nonNegativeInteger('limit', values.limit);
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    const reader = store.readStream(stream, {
      direction: values.backwards === true ? 'backwards' : 'forwards',
      signal,
      from,
      limit,
    });
    let events = 0;
    for await (const page of reader.pages()) {
      events += page.length;
      const lines = page.map((event) => eventText(event, { paint, json, withStream: false }));
      await writeOut(stdout, lines.join(''), signal);
    }
    if (events === 0 && !json) stderr.write(`no events in '${stream}'\n`);
    return exitCodes.ok;
  },
});

/** Limits the input; the store checks its own, much smaller limit for a payload. */
const inputCharsMax = 64 * 1_048_576;

const streamAppend = defineCommand({
  name: 'stream append',
  summary: 'appends an event to a stream',
  usage: '<stream> --type <event-type> --data <json|-> [options]',
  options: {
    ...storeOption,
    type: option('event-type', 'such as currency.renamed.v1'),
    data: option('json', 'payload; - reads it from stdin'),
    expected: option('revision', 'any (default), none, exists, or the revision of the last event'),
    tenant: option('key', 'tenant, if its name contains a hyphen: demo-za'),
    'event-id': option('id', 'an event with the same id is appended only once'),
    correlation: option('id', 'flow that the event belongs to (default: a new one)'),
    causation: option('id', 'event or command that caused the event'),
    'idempotency-key': option('key', 'idempotency key of the original request'),
    user: option('id', 'user who caused the event'),
    header: repeatable('name=value', 'header (repeatable); dataSubject=<id> encrypts the payload'),
  },
  examples: [
    `millrace stream append banking.currency.v1-core-USD --type currency.created.v1 --data '{"name":"Dollar"}'`,
    'millrace stream append banking.currency.v1-core-USD --type currency.renamed.v1 --data - --expected 0 < payload.json',
  ],
  argument: oneStream,
  async run(context) {
    const { values, argument: stream, signal, paint } = context;
    const { type, data, user } = values;
    if (type === undefined) throw usage('stream append needs --type, such as currency.created.v1');
    if (data === undefined) throw usage(`stream append needs --data, such as '{"name":"Dollar"}'`);
    const expected = expectedRevision(values.expected);
    const headers = pairs('header', values.header);
    const { tenant, bc, agg, id } = partsOf(stream, values.tenant);
    const payload = parsePayload(data === '-' ? await readInput(context) : data);
    const { createEnvelope } = await import('../../contracts/envelope.ts');
    const envelope = createEnvelope(
      { type, payload },
      {
        tenant,
        aggregate: { bc, type: agg, id },
        ...defined({
          eventId: values['event-id'],
          correlationId: values.correlation,
          causationId: values.causation,
          idempotencyKey: values['idempotency-key'],
          user: user === undefined ? undefined : { id: user },
          headers,
        }),
      },
    );
    await using store = await openStore(context, values.store);
    const { revision, position, isDuplicate } = await store.append(stream, [envelope], {
      signal,
      expected,
    });
    const done = paint.green(isDuplicate ? 'already appended:' : 'appended');
    return {
      json: { stream, eventId: envelope.eventId, revision, position, isDuplicate },
      text: `${done} ${type} at revision ${revision} of ${stream}`,
    };
  },
});

const streamTail = defineCommand({
  name: 'stream tail',
  summary: 'follows one stream or all streams until Ctrl-C (NDJSON with --json)',
  usage: '[<stream>] [options]',
  options: {
    ...storeOption,
    ...eventFilterOptions,
    'from-start': flag('shows existing events first'),
    limit: option('N', 'stops after this number of events'),
  },
  examples: [
    'millrace stream tail',
    'millrace stream tail banking.currency.v1-core-USD --from-start',
    'millrace stream tail --category banking.currency.v1 --type-prefix currency.re --json',
  ],
  hasArguments: true,
  async run(context) {
    const { values, stdout, stderr, signal, paint } = context;
    const stream = optionalArgument(context, oneStream);
    const filter = eventFilterOf(values);
    if (stream !== undefined && filter !== undefined) {
      throw usage('stream tail takes a stream or a filter, not both');
    }
    const json = values.json === true;
    const from = values['from-start'] === true ? {} : ({ after: 'end' } as const);
    let left = nonNegativeInteger('limit', values.limit) ?? Number.POSITIVE_INFINITY;
    await using store = await openExistingStore(context, values.store);
    const feed =
      stream === undefined
        ? store.subscribe({ ...from, signal, filter })
        : store.subscribeToStream(stream, { ...from, signal });
    for await (const item of feed) {
      if (item.kind === 'caughtUp' && stderr.isTTY === true) {
        stderr.write(paint.dim('waiting for events; press Ctrl-C to stop\n'));
      }
      if (item.kind !== 'events') continue;
      const events = item.events.slice(0, left);
      left -= events.length;
      const withStream = stream === undefined;
      const lines = events.map((event) => eventText(event, { paint, json, withStream }));
      await writeOut(stdout, lines.join(''), signal);
      if (left === 0) break;
    }
    return exitCodes.ok;
  },
});

const streamInfo = defineCommand({
  name: 'stream info',
  summary: "shows a stream's revision, retention and state",
  usage: '<stream>',
  options: storeOption,
  examples: ['millrace stream info banking.currency.v1-core-USD'],
  argument: oneStream,
  async run(context) {
    await using store = await openExistingStore(context, context.values.store);
    const info = await store.streamInfo(context.argument);
    return info === undefined ? unknownStream(context) : { json: info, text: infoText(info) };
  },
});

const retentionOptions = {
  'max-count': option('N', 'keeps only the last N events; none removes the limit'),
  'max-age': option(
    'duration',
    'keeps only events younger than 90s, 12h, 30d; none removes the limit',
  ),
  'truncate-before': option(
    'revision',
    'hides events before this revision; none removes the limit',
  ),
};

const streamMetadata = defineCommand({
  name: 'stream metadata',
  summary: "shows or changes a stream's retention",
  usage: '<stream> [--max-count <N>] [--max-age <duration>] [--truncate-before <revision>]',
  options: {
    ...storeOption,
    ...retentionOptions,
  },
  examples: [
    'millrace stream metadata banking.currency.v1-core-USD',
    'millrace stream metadata banking.currency.v1-core-USD --max-count 100 --max-age none',
  ],
  argument: oneStream,
  async run(context) {
    const { values, argument: stream } = context;
    const change = (name: keyof typeof retentionOptions, parse = nonNegativeInteger): Change =>
      values[name] === 'none' ? 'none' : parse(name, values[name]);
    const maxAgeMs = change('max-age', durationMs);
    const changes: Changes = {
      maxCount: change('max-count'),
      maxAgeSeconds: typeof maxAgeMs === 'number' ? maxAgeMs / 1_000 : maxAgeMs,
      truncateBefore: change('truncate-before'),
    };
    await using store = await openExistingStore(context, values.store);
    const info = await store.streamInfo(stream);
    const isChanged = Object.values(changes).some((each) => each !== undefined);
    if (info === undefined && !isChanged) return unknownStream(context);
    const metadata = merge(info?.metadata ?? {}, changes);
    if (isChanged) {
      if (info !== undefined) assertLive(info);
      await store.setStreamMetadata(stream, metadata);
    }
    return {
      json: { stream, metadata },
      text: metadataText(metadata) || 'no retention limits: all events are kept',
    };
  },
});

const streamDelete = defineCommand({
  name: 'stream delete',
  summary: "hides all of a stream's events; the next append reopens the stream",
  usage: '<stream> [--expected <revision>]',
  options: { ...storeOption, ...expectedOption },
  examples: ['millrace stream delete banking.currency.v1-core-USD --expected 12'],
  argument: oneStream,
  async run(context) {
    const { values, argument: stream, paint } = context;
    const expected = expectedRevision(values.expected);
    await using store = await openExistingStore(context, values.store);
    const info = await store.streamInfo(stream);
    if (info === undefined) return unknownStream(context);
    if (info.deleted === 'tombstone') {
      throw new MillraceError('STREAM_DELETED', `stream '${stream}' already has a tombstone`, {
        details: { stream },
      });
    }
    await store.deleteStream(stream, defined({ expected }));
    return {
      json: { stream, deleted: 'soft' },
      text: `${paint.green('deleted')} ${stream}; the next append continues its revisions`,
    };
  },
});

const streamTombstone = defineCommand({
  name: 'stream tombstone',
  summary: 'deletes a stream permanently: it can no longer be read or appended to',
  usage: '<stream> --yes [--expected <revision>]',
  options: {
    ...storeOption,
    ...expectedOption,
    yes: flag('confirms the permanent deletion'),
  },
  examples: ['millrace stream tombstone banking.currency.v1-core-USD --yes'],
  argument: oneStream,
  async run(context) {
    const { values, argument: stream, paint } = context;
    const expected = expectedRevision(values.expected);
    checkConfirmed(values, `a tombstone deletes '${stream}' permanently`);
    await using store = await openExistingStore(context, values.store);
    if ((await store.streamInfo(stream)) === undefined) return unknownStream(context);
    await store.tombstoneStream(stream, defined({ expected }));
    return {
      json: { stream, deleted: 'tombstone' },
      text: `${paint.green('permanently deleted')} ${stream}`,
    };
  },
});

export const streamCommands: readonly Command[] = [
  streamRead,
  streamAppend,
  streamTail,
  streamInfo,
  streamMetadata,
  streamDelete,
  streamTombstone,
];

function unknownStream({
  stdout,
  stderr,
  values,
  argument: stream,
}: CommandContext & {
  readonly values: { readonly json?: boolean };
  readonly argument: string;
}): number {
  if (values.json === true) stdout.write('null\n');
  else stderr.write(`unknown stream '${stream}'\n`);
  return exitCodes.failed;
}

interface EventTextOptions {
  readonly paint: Paint;
  readonly json: boolean;
  readonly withStream: boolean;
}

function eventText(event: RecordedEvent, { paint, json, withStream }: EventTextOptions): string {
  if (json) return `${JSON.stringify(event)}\n`;
  const location = withStream ? `${event.stream} ${event.revision}` : String(event.revision);
  const parts = [
    paint.bold(printable(location)),
    paint.dim(event.recordedAt),
    paint.cyan(printable(event.type)),
    printable(JSON.stringify(event.payload)),
  ];
  return `${parts.join('  ')}\n`;
}

/** The parser needs to know a tenant whose name contains a hyphen. */
function partsOf(stream: string, tenant: string | undefined): ParsedStreamName {
  if (tenant === undefined) return parseStreamName(stream);
  const parts = parseStreamName(stream, new Set([tenant]));
  if (parts.tenant === tenant) return parts;
  throw new MillraceError(
    'TENANT_MISMATCH',
    `stream '${stream}' belongs to tenant '${parts.tenant}', not to '${tenant}'`,
    { details: { stream, tenant } },
  );
}

async function readInput({ stdin }: CommandContext): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of stdin()) {
    text += typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    if (text.length > inputCharsMax) throw usage('--data from stdin is too large for an event');
  }
  return text + decoder.decode();
}

function parsePayload(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw usage('--data is not JSON', { cause: error });
  }
}

const states = { no: 'live', soft: 'deleted', tombstone: 'permanently deleted' } as const;

function infoText({ stream, revision, deleted, metadata }: StreamInfo): string {
  const fields = [
    ['stream', stream],
    ['revision', revision === -1 ? 'no events yet' : revision],
    ['state', states[deleted]],
  ] as const;
  return fieldLines(fields, { width: 18 }) + metadataText(metadata);
}

function metadataText({ maxCount, maxAgeSeconds, truncateBefore, custom }: StreamMetadata): string {
  const fields = [
    ['max-count', maxCount],
    ['max-age', maxAgeSeconds === undefined ? undefined : `${maxAgeSeconds} s`],
    ['truncate-before', truncateBefore],
    ['custom', custom],
  ] as const;
  return fieldLines(fields, { width: 18 });
}

/** An option that is not given keeps the limit; `none` removes it. */
type Change = number | 'none' | undefined;
type Limit = 'maxCount' | 'maxAgeSeconds' | 'truncateBefore';
type Changes = Readonly<Record<Limit, Change>>;

function merge(metadata: StreamMetadata, changes: Changes): StreamMetadata {
  const merged: { -readonly [Key in keyof StreamMetadata]: StreamMetadata[Key] } = { ...metadata };
  for (const [name, value] of Object.entries(changes) as [Limit, Change][]) {
    if (value === 'none') delete merged[name];
    else if (value !== undefined) merged[name] = value;
  }
  return merged;
}

/** Replacing the metadata would also remove the deletion mark and restore a deleted stream. */
function assertLive({ stream, deleted }: StreamInfo): void {
  if (deleted === 'no') return;
  throw new MillraceError('STREAM_DELETED', `stream '${stream}' is deleted: it has no retention`, {
    details: { stream },
  });
}
