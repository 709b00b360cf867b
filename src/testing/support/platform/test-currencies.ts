// Helpers of the export and import tests: a few streams of currencies, and everything that readers see of a store.

import { openMemory } from '../../../engines/memory/index.ts';
import { createEnvelope, type DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { exportEvents, type ExportOptions } from '../../../platform/transfer/export-events.ts';
import { importEvents, type ImportResult } from '../../../platform/transfer/import-events.ts';

export const streams = ['USD', 'EUR', 'CHF', 'JPY'].map((id) => `banking.currency.v1-core-${id}`);
export const [usd = '', eur = '', chf = ''] = streams;

export function renamed(
  name: string,
  more: Partial<DomainEventEnvelope> = {},
): DomainEventEnvelope {
  const envelope = createEnvelope(
    { type: 'currency.renamed.v1', payload: { name } },
    { tenant: 'core', aggregate: { bc: 'banking', type: 'currency', id: 'USD' } },
  );
  return { ...envelope, ...more };
}

export const several = (...names: readonly string[]): DomainEventEnvelope[] =>
  names.map((name) => renamed(name));

export async function exported(store: EventStore, options: ExportOptions = {}): Promise<string> {
  let text = '';
  for await (const piece of exportEvents(store, options)) text += piece;
  return text;
}

export const openTarget = (): EventStore => openMemory({ names: 'open' }).store;

export function imported(store: EventStore, text: string): Promise<ImportResult> {
  return importEvents(store, pieces(text));
}

/** Splits the text in the middle of lines and of characters. */
async function* pieces(text: string, bytes = 1_013): AsyncGenerator<Uint8Array, void, undefined> {
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes);
}

/** Everything that readers see of a store, except the fields that the store adds when it records an event. */
export async function visible(store: EventStore, { revisions = true } = {}): Promise<unknown> {
  const shown: Record<string, unknown> = {};
  for (const stream of streams) {
    const info = await store.streamInfo(stream);
    const ended = info?.deleted === 'tombstone';
    const events = ended ? [] : await store.readStream(stream).toArray();
    const { truncateBefore, ...metadata } = info?.metadata ?? {};
    shown[stream] = {
      deleted: info?.deleted,
      metadata,
      ...(revisions ? { revision: info?.revision, truncateBefore } : {}),
      events: events.map((event) => withoutPosition(event, revisions)),
    };
  }
  return shown;
}

function withoutPosition(event: RecordedEvent, revisions: boolean): unknown {
  const { position: _, recordedAt: __, revision, ...rest } = event;
  return revisions ? { ...rest, revision } : rest;
}

export async function idsInOrder(store: EventStore): Promise<string[]> {
  const events = await store.readAll({ filter: { system: false } }).toArray();
  return events.map(({ eventId }) => eventId);
}
