// One interface for both official npm clients, which differ in the names of a few options and error fields. Each one
// needs a separate process, because their generated messages register globally and overwrite each other.

import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import type {
  AppendResult,
  BinaryEventData,
  EventData,
  JSONEventData,
  KurrentDBClient,
  ResolvedEvent,
} from '@kurrent/kurrentdb-client';

type Expected = 'any' | 'no_stream' | 'stream_exists' | bigint;

export interface OfficialClient extends AsyncDisposable {
  /** The common part; `append` differs. */
  readonly api: KurrentDBClient;
  readonly append: (
    stream: string,
    events: EventData | EventData[],
    expected?: Expected,
    options?: AppendExtras,
  ) => Promise<AppendResult>;
}

interface AppendExtras {
  readonly credentials?: { readonly username: string; readonly password: string };
  readonly batchAppendSize?: number;
}

export interface ClientKind {
  readonly name: string;
  /** Multi-stream append needs the KurrentDB client. */
  readonly hasMultiStream: boolean;
  /** The strategy PinnedByCorrelation needs the KurrentDB client. */
  readonly hasPinnedByCorrelation: boolean;
  readonly connect: (url: string) => OfficialClient;
}

export async function kurrentClient(): Promise<ClientKind> {
  const { KurrentDBClient: Client } = await import('@kurrent/kurrentdb-client');
  return {
    name: '@kurrent/kurrentdb-client',
    hasMultiStream: true,
    hasPinnedByCorrelation: true,
    connect(url) {
      const api = Client.connectionString(url);
      return {
        api,
        append: (stream, sent, streamState = 'any', options = {}) =>
          api.appendToStream(stream, sent, { streamState, ...options }),
        [Symbol.asyncDispose]: () => closed(api),
      };
    },
  };
}

export async function eventStoreClient(): Promise<ClientKind> {
  const { EventStoreDBClient: Client } = await import('@eventstore/db-client');
  return {
    name: '@eventstore/db-client',
    hasMultiStream: false,
    hasPinnedByCorrelation: false,
    connect(url) {
      const theirs = Client.connectionString(url.replace(/^kurrentdb/, 'esdb'));
      const api = theirs as unknown as KurrentDBClient;
      return {
        api,
        append: async (stream, sent, expectedRevision = 'any', options = {}) =>
          theirs.appendToStream(stream, sent, { expectedRevision, ...options }),
        [Symbol.asyncDispose]: () => closed(api),
      };
    },
  };
}

/** `dispose` ends the calls but not the connection. */
async function closed(api: KurrentDBClient): Promise<void> {
  await api.dispose();
  const inside = api as unknown as { getChannel(): Promise<{ close(): void }> };
  (await inside.getChannel()).close();
}

/** A unique name. */
export function unique(prefix = 'stream'): string {
  return `${prefix}${randomUUID().replaceAll('-', '')}`;
}

export function event(fields: Partial<JSONEventData> = {}): JSONEventData {
  return {
    id: randomUUID(),
    contentType: 'application/json',
    type: 'Happened',
    data: { n: 1 },
    metadata: undefined,
    ...fields,
  };
}

export function bytesEvent(data: Uint8Array): BinaryEventData {
  const contentType = 'application/octet-stream';
  return { id: randomUUID(), contentType, type: 'Bytes', data, metadata: undefined };
}

export function events(count: number, fields: Partial<JSONEventData> = {}): JSONEventData[] {
  return Array.from({ length: count }, (_, n) => event({ data: { n }, ...fields }));
}

export async function collect<T>(items: AsyncIterable<T>, max = Infinity): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
    if (all.length >= max) break;
  }
  return all;
}

export function idsOf(items: readonly (ResolvedEvent | { readonly id: string })[]): string[] {
  return items.map((item) => ('id' in item ? item.id : (item.event?.id ?? '')));
}

export function revisionsOf(items: readonly ResolvedEvent[]): number[] {
  return items.map(({ event: read }) => Number(read?.revision));
}

interface ClientError {
  readonly type: string;
  readonly streamName?: string;
  readonly groupName?: string;
  readonly maxAppendSize?: number;
  /** The versions of a conflict, independent of the client. */
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** Asserts that a call is rejected with this error type of the client. */
export async function rejectsWith(
  type: string,
  work: () => Promise<unknown>,
): Promise<ClientError> {
  try {
    await work();
  } catch (error) {
    const fields = error as Record<string, unknown>;
    assert.equal(fields['type'], type, `expected ${type}, got ${String(error)}`);
    return {
      ...fields,
      type,
      expected: fields['expectedState'] ?? fields['expectedVersion'],
      actual: fields['actualState'] ?? fields['actualVersion'],
    };
  }
  throw new assert.AssertionError({ message: `expected ${type}, but it succeeded` });
}
