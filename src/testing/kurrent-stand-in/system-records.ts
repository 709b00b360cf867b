// The records that EventStoreDB writes by itself: links of its system projections, statistics, and metadata of streams
// that an append or a deletion restores.

import { randomUUID } from 'node:crypto';
import { markHeader, type Mark } from '../../contracts/event-form.ts';
import { correlationOf, linkType } from '../../server/kurrent/events/to-wire.ts';
import { encodeMeta } from '../../store/event-meta.ts';
import { toRecordedEvent } from '../../store/recorded-event.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import { categoryOf } from '../../store/stream-category.ts';
import {
  fromMetadataPayload,
  metadataStream,
  metadataType,
  toRetention,
} from '../../store/stream-metadata.ts';
import type { LoggedRow, LogRecord } from './record-log.ts';

/** One record of statistics per so many linked events; a real server writes one every 30 s. */
const statsEvery = 25;

/** The links to these records; `linkedBefore` counts the linked records before them. */
export function linksTo(rows: readonly LoggedRow[], linkedBefore: number): readonly LogRecord[] {
  return rows.flatMap((row, index) => {
    const category = categoryOf(row.stream);
    const isFirst = row.revision === 0 && !row.stream.startsWith('$');
    const correlation = correlationOf(toRecordedEvent(row));
    const streams = [
      ...(isFirst ? ['$streams'] : []),
      ...(category === undefined ? [] : [`$ce-${category}`]),
      `$et-${row.type}`,
      ...(correlation === undefined ? [] : [`$bc-${correlation}`]),
      ...(isFirst && category !== undefined ? [`$category-${category}`] : []),
    ];
    const links = streams.map((stream) => bytesRecord(row, stream, linkType));
    const isDue = (linkedBefore + index + 1) % statsEvery === 0;
    return isDue ? [...links, statistics(row)] : links;
  });
}

/** The metadata of a restored stream: that of the payload, but its events before a revision stay hidden. */
export function restoredMetadata(
  of: string,
  about: { readonly payload?: string | undefined; readonly truncateBefore: number },
  nowMs: number,
): LogRecord {
  const stream = metadataStream(of);
  const members = JSON.parse(about.payload ?? '{}') as Record<string, unknown>;
  const metadata = { ...members, $tb: about.truncateBefore };
  const payload = JSON.stringify(metadata);
  const row = systemRow(stream, { type: metadataType, payload, nowMs });
  const values = toRetention(fromMetadataPayload(metadata));
  return { stream, row, recordedAtMs: nowMs, retention: { of, values } };
}

function bytesRecord(target: LoggedRow, stream: string, type: string): LogRecord {
  const { recordedAtMs: nowMs } = target;
  const mark: Mark = { json: false, data: 'bytes', metadata: 'none' };
  const data = Buffer.from(`${target.revision}@${target.stream}`).toString('base64');
  const payload = JSON.stringify({ $bytes: data });
  const row = systemRow(stream, { type, payload, nowMs, headers: { [markHeader]: mark } });
  return { stream, row, recordedAtMs: nowMs };
}

function statistics({ recordedAtMs: nowMs }: LoggedRow): LogRecord {
  const stream = '$stats-127.0.0.1:2113';
  const payload = JSON.stringify({ 'proc-cpu': 12.5, 'es-writer-lastFlushSize': 512 });
  const row = systemRow(stream, { type: '$statsCollected', payload, nowMs });
  return { stream, row, recordedAtMs: nowMs };
}

function systemRow(
  stream: string,
  about: {
    readonly type: string;
    readonly payload: string;
    readonly nowMs: number;
    readonly headers?: Readonly<Record<string, unknown>>;
  },
): RowToWrite {
  const { type, payload, nowMs, headers } = about;
  const eventId = randomUUID();
  const envelope = {
    type,
    eventId,
    occurredAt: new Date(nowMs).toISOString(),
    correlationId: eventId,
    tenant: '',
    aggregate: { bc: '', type: '', id: stream },
    payload: null,
    ...(headers === undefined ? {} : { headers }),
  };
  return { eventId, type, tenant: '', payload, meta: encodeMeta(stream, envelope) };
}
