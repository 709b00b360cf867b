// The main thread's side of the writer thread: requests go over in bundles, answers come back the
// same way, and fsync never blocks the event loop.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import { isPlain, outcomeNumbers, packAppend, unpackOutcome } from './packed-append.ts';
import type { BusRequest } from './sqlite-bus-writer.ts';
import type { ModelWrites } from './sqlite-documents.ts';
import { sqliteError, type SqliteFailure } from './sqlite-error.ts';

/** Values as SQLite takes them. */
export type SqlValue = string | number | null | Uint8Array;

export interface SqlStatement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Unless so many rows come back, nothing of the request is committed. */
  readonly expect?: { readonly what: string; readonly rows: number };
}

export type WriterRequest =
  | {
      readonly id: number;
      readonly kind: 'append';
      readonly writes: readonly StreamWrite[];
      readonly nowMs: number;
      readonly inline?: InlineWrites;
    }
  /** All in the commit that the answer tells of; answers with the rows of each statement. */
  | { readonly id: number; readonly kind: 'run'; readonly statements: readonly SqlStatement[] }
  | ({ readonly id: number } & DocumentRequest)
  | { readonly id: number; readonly kind: 'bus'; readonly request: BusRequest };

/** Documents that go into the append's own commit. Unless the revisions are these: `moved`. */
export interface InlineWrites {
  readonly revisions: readonly number[];
  readonly documents: readonly ModelWrites[];
}

/** Answers with the outcome of each write, or with how many were removed. */
type DocumentRequest =
  | ({ readonly kind: 'documents' } & ModelWrites)
  | { readonly kind: 'clear'; readonly model: string; readonly limit: number };

/** Plain appends as one text (packed-append), everything else as it is. */
export type WriterMessage = string | WriterRequest;

/** Outcomes of plain appends as numbers, and the other answers of one commit. */
export interface WriterReplies {
  readonly outcomes: readonly number[];
  readonly replies: readonly WriterReply[];
}

export type WriterReply =
  | { readonly id: number; readonly ok: true; readonly result: unknown }
  | { readonly id: number; readonly ok: false; readonly error: SqliteFailure };

export interface WriterSettings {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

export interface SqliteWriter extends AsyncDisposable {
  append(
    writes: readonly StreamWrite[],
    nowMs: number,
    options?: { readonly signal?: AbortSignal | undefined; readonly inline?: InlineWrites },
  ): Promise<readonly WriteOutcome[] | 'moved'>;
  run(statements: readonly SqlStatement[]): Promise<readonly (readonly SqlRow[])[]>;
  documents(request: DocumentRequest): Promise<unknown>;
  bus(request: BusRequest): Promise<unknown>;
}

export type SqlRow = Readonly<Record<string, SqlValue>>;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type RequestBody = WriterRequest extends infer R
  ? R extends unknown
    ? Omit<R, 'id'>
    : never
  : never;

/** More than this in flight would only grow the queue: appends wait here, in order. */
const inFlightMax = 10_000;

/** So many are worth a commit of their own: the thread begins while the caller's still prepares. */
const bundleMax = 8;

/** Starts the writer thread and waits until its database is open and migrated. */
export async function startSqliteWriter(
  settings: WriterSettings,
  onCommit: () => void,
): Promise<SqliteWriter> {
  const script = new URL(`./sqlite-writer-main${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(script, {
    workerData: settings,
    name: 'millrace-sqlite-writer',
    // The program's own flags are not ours: with --input-type, say, the thread would not start.
    execArgv: [],
  });
  const { path } = settings;
  const pending = new Map<number, Pending>();
  let bundle = '';
  let isHeld = false;
  let bundled = 0;
  let nextId = 1;
  let failure: MillraceError | undefined;

  const fail = (error: MillraceError): void => {
    failure ??= error;
    for (const { reject } of pending.values()) reject(failure);
    pending.clear();
  };

  const opened = Promise.withResolvers<void>();
  // Under `node --watch`, what the thread imports is told by messages, too: those are not ours.
  worker.on('message', (message: WriterReplies | WriterReply | object) => {
    if ('replies' in message) takeReplies(message);
    else if ('ok' in message && message.ok) opened.resolve();
    else if ('ok' in message) {
      opened.reject(sqliteError(message.error, { path, doing: 'write' }));
    }
  });
  worker.once('error', (error) => {
    const crash = new MillraceError('STORE_UNAVAILABLE', 'the writer thread crashed', {
      cause: error,
    });
    opened.reject(crash);
    fail(crash);
  });
  worker.once('exit', () => fail(new MillraceError('STORE_CLOSED', 'the event store was closed')));
  await opened.promise;
  // An idle store must not keep the process; work under way must.
  worker.unref();

  function takeReplies({ outcomes, replies }: WriterReplies): void {
    for (let at = 0; at < outcomes.length; at += outcomeNumbers) {
      const id = outcomes[at] ?? 0;
      const waiter = pending.get(id);
      pending.delete(id);
      waiter?.resolve([unpackOutcome(outcomes, at)]);
    }
    for (const reply of replies) {
      const waiter = pending.get(reply.id);
      pending.delete(reply.id);
      if (reply.ok) waiter?.resolve(reply.result);
      else waiter?.reject(sqliteError(reply.error, { path, doing: 'write' }));
    }
    if (pending.size === 0) setImmediate(letGo);
    onCommit();
  }

  /** Not at once: whoever was answered mostly asks again before that. */
  function letGo(): void {
    if (pending.size > 0 || !isHeld) return;
    isHeld = false;
    worker.unref();
  }

  function request(send: (id: number) => void): Promise<unknown> {
    if (failure !== undefined) return Promise.reject(failure);
    if (pending.size >= inFlightMax) {
      return Promise.reject(
        new MillraceError('STORE_UNAVAILABLE', `more than ${inFlightMax} writes are waiting`, {
          details: { inFlightMax },
        }),
      );
    }
    return new Promise((resolve, reject) => {
      const id = nextId;
      nextId += 1;
      if (!isHeld) {
        isHeld = true;
        worker.ref();
      }
      pending.set(id, { resolve, reject });
      send(id);
    });
  }

  /** After all that goes over as text: requests are taken in the order in which they were made. */
  function post(body: RequestBody): Promise<unknown> {
    return request((id) => {
      flush();
      worker.postMessage({ ...body, id } satisfies WriterMessage);
    });
  }

  function bundleUp(text: string): void {
    // Behind the microtasks: what all the callers that were just answered ask for goes over together.
    if (bundled === 0) process.nextTick(flush);
    bundle += text;
    bundled += 1;
    if (bundled === bundleMax) flush();
  }

  function flush(): void {
    if (bundled === 0) return;
    worker.postMessage(bundle satisfies WriterMessage);
    bundle = '';
    bundled = 0;
  }

  return {
    append(writes, nowMs, { signal, inline } = {}) {
      // Once handed over it is committed or not; a signal that fires later changes nothing.
      if (signal?.aborted === true) return Promise.reject(aborted(signal));
      const outcomes =
        inline === undefined && isPlain(writes)
          ? request((id) => bundleUp(packAppend({ id, nowMs, write: writes[0] })))
          : post({ kind: 'append', writes, nowMs, ...(inline === undefined ? {} : { inline }) });
      return outcomes as Promise<readonly WriteOutcome[] | 'moved'>;
    },
    run: (statements) =>
      post({ kind: 'run', statements }) as Promise<readonly (readonly SqlRow[])[]>,
    documents: (body) => post(body),
    bus: (body) => post({ kind: 'bus', request: body }),
    async [Symbol.asyncDispose]() {
      if (failure !== undefined) return;
      // The thread takes messages in order: everything asked for before is committed first.
      flush();
      const gone = new Promise((resolve) => worker.once('exit', resolve));
      // Held to the end: nobody lets go of it any more.
      isHeld = false;
      worker.ref();
      worker.postMessage({ kind: 'close' });
      await gone;
    },
  };
}
