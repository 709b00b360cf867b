// The main thread's side of the writer thread: requests go over in bundles, answers come back the
// same way, and fsync never blocks the event loop.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { aborted } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import { isPlain, outcomeNumbers, packAppend, unpackOutcome } from './packed-append.ts';
import type { BusRequest } from '../bus/writer.ts';
import type { TaskRequest } from '../tasks/writer.ts';
import type { ModelWrites } from '../read-models/documents.ts';
import { sqliteError, type SqliteFailure } from '../connection/error.ts';
import { tailRows, type TailRow } from '../../../store/append-tail.ts';

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
  | { readonly id: number; readonly kind: 'bus'; readonly request: BusRequest }
  | { readonly id: number; readonly kind: 'tasks'; readonly request: TaskRequest };

/** Documents that go into the append's own commit. Unless the revisions are these: `moved`. */
export interface InlineWrites {
  readonly revisions: readonly number[];
  readonly documents: readonly ModelWrites[];
}

/** Answers with the outcome of each write, or with how many were removed. */
type DocumentRequest =
  | ({ readonly kind: 'documents' } & ModelWrites)
  | { readonly kind: 'clear'; readonly model: string; readonly limit: number };

/** Plain appends as one text (packed-append), everything else as it is; in the order of the requests. */
export type WriterMessage = readonly (string | WriterRequest)[];

/** Outcomes of plain appends as numbers, and the other answers of one commit. */
export interface WriterReplies {
  readonly outcomes: readonly number[];
  readonly replies: readonly WriterReply[];
}

/** What everybody sees by now, and what is answered once it is synced, too. */
export interface WriterCommitted {
  readonly committed: readonly WriterReply[];
}

export type WriterReply =
  | { readonly id: number; readonly ok: true; readonly result: unknown }
  | { readonly id: number; readonly ok: false; readonly error: SqliteFailure };

export interface WriterSettings {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

export interface SqliteWriter extends AsyncDisposable {
  /** Appends that were not answered yet. */
  readonly appending: number;
  append(
    writes: readonly StreamWrite[],
    nowMs: number,
    options?: { readonly signal?: AbortSignal | undefined; readonly inline?: InlineWrites },
  ): Promise<readonly WriteOutcome[] | 'moved'>;
  run(statements: readonly SqlStatement[]): Promise<readonly (readonly SqlRow[])[]>;
  documents(request: DocumentRequest): Promise<unknown>;
  /** `onCommitted` comes first, in the order of commits. */
  bus(request: BusRequest, onCommitted: (answer: unknown) => void): Promise<unknown>;
  tasks(request: TaskRequest): Promise<unknown>;
}

export type SqlRow = Readonly<Record<string, SqlValue>>;

interface Pending {
  /** Of an append: what there is to tell of once it is committed. */
  readonly appended?: { readonly writes: readonly StreamWrite[]; readonly nowMs: number };
  /** Told once, within the turn in which it came. */
  onCommitted?: ((result: unknown) => void) | undefined;
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
const bundleMax = 32;

/** Starts the writer thread and waits until its database is open and migrated. */
export async function startSqliteWriter(
  settings: WriterSettings,
  onAppended: (rows: readonly TailRow[]) => void = () => undefined,
): Promise<SqliteWriter> {
  const script = new URL(`./writer-main${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(script, {
    workerData: settings,
    name: 'millrace-sqlite-writer',
    // The program's own flags are not ours: with --input-type, say, the thread would not start.
    execArgv: [],
  });
  const { path } = settings;
  const pending = new Map<number, Pending>();
  let bundle: (string | WriterRequest)[] = [];
  let isHeld = false;
  let bundled = 0;
  let flushing: NodeJS.Immediate | 'next' | undefined;
  let nextId = 1;
  let appending = 0;
  let failure: MillraceError | undefined;

  const fail = (error: MillraceError): void => {
    failure ??= error;
    for (const { reject } of pending.values()) reject(failure);
    pending.clear();
  };

  const opened = Promise.withResolvers<void>();
  // Under `node --watch`, what the thread imports is told by messages, too: those are not ours.
  worker.on('message', (message: WriterReplies | WriterCommitted | WriterReply | object) => {
    if ('replies' in message) takeReplies(message);
    else if ('committed' in message) tellCommitted(message);
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
    const appends: (readonly TailRow[])[] = [];
    const before = appending;
    const answer = (id: number, result: unknown): void => {
      const waiter = taken(id);
      if (waiter?.appended !== undefined) appends.push(...rowsOf(waiter.appended, result));
      told(waiter, result);
      waiter?.resolve(result);
    };
    for (let at = 0; at < outcomes.length; at += outcomeNumbers) {
      answer(outcomes[at] ?? 0, [unpackOutcome(outcomes, at)]);
    }
    for (const reply of replies) {
      if (reply.ok) {
        answer(reply.id, reply.result);
        continue;
      }
      taken(reply.id)?.reject(sqliteError(reply.error, { path, doing: 'write' }));
    }
    if (pending.size === 0) setImmediate(letGo);
    // Also when nothing was written: who left it to this answer to be woken must look for others' appends.
    if (appending < before) onAppended(appends.toSorted(bySequence).flat());
  }

  function tellCommitted({ committed }: WriterCommitted): void {
    for (const reply of committed) if (reply.ok) told(pending.get(reply.id), reply.result);
  }

  function told(waiter: Pending | undefined, result: unknown): void {
    waiter?.onCommitted?.(result);
    if (waiter !== undefined) waiter.onCommitted = undefined;
  }

  function taken(id: number): Pending | undefined {
    const waiter = pending.get(id);
    pending.delete(id);
    if (waiter?.appended !== undefined) appending -= 1;
    return waiter;
  }

  /** Not at once: whoever was answered mostly asks again before that. */
  function letGo(): void {
    if (pending.size > 0 || !isHeld) return;
    isHeld = false;
    worker.unref();
  }

  function request(
    send: (id: number) => void,
    about: Pick<Pending, 'appended' | 'onCommitted'> = {},
  ): Promise<unknown> {
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
      if (about.appended !== undefined) appending += 1;
      pending.set(id, { ...about, resolve, reject });
      send(id);
    });
  }

  /** Requests are taken in the order in which they were made. */
  function post(body: RequestBody, about?: Parameters<typeof request>[1]): Promise<unknown> {
    return request((id) => bundleUp({ ...body, id }), about);
  }

  function bundleUp(part: string | WriterRequest): void {
    flushing ??= flushLater();
    const last = bundle.length - 1;
    const before = bundle[last];
    if (typeof part === 'string' && typeof before === 'string') bundle[last] = before + part;
    else bundle.push(part);
    bundled += 1;
    if (bundled === bundleMax) flush();
  }

  function flushLater(): NodeJS.Immediate | 'next' {
    // While the thread works, nothing is lost by waiting for the end of the turn: what all connections
    // that are heard in it ask for goes over together.
    if (pending.size > 1) return setImmediate(flush);
    // Behind the microtasks: what all the callers that were just answered ask for goes over together.
    process.nextTick(flush);
    return 'next';
  }

  function flush(): void {
    if (typeof flushing === 'object') clearImmediate(flushing);
    flushing = undefined;
    if (bundled === 0) return;
    worker.postMessage(bundle satisfies WriterMessage);
    bundle = [];
    bundled = 0;
  }

  return {
    get appending() {
      return appending;
    },
    append(writes, nowMs, { signal, inline } = {}) {
      // Once handed over it is committed or not; a signal that fires later changes nothing.
      if (signal?.aborted === true) return Promise.reject(aborted(signal));
      const appended = { writes, nowMs };
      const outcomes =
        inline === undefined && isPlain(writes)
          ? request((id) => bundleUp(packAppend({ id, nowMs, write: writes[0] })), { appended })
          : post(
              { kind: 'append', ...appended, ...(inline === undefined ? {} : { inline }) },
              { appended },
            );
      return outcomes as Promise<readonly WriteOutcome[] | 'moved'>;
    },
    run: (statements) =>
      post({ kind: 'run', statements }) as Promise<readonly (readonly SqlRow[])[]>,
    documents: (body) => post(body),
    bus: (body, onCommitted) => post({ kind: 'bus', request: body }, { onCommitted }),
    tasks: (body) => post({ kind: 'tasks', request: body }),
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

/** What the thread answers to an append. */
function rowsOf(
  { writes, nowMs }: NonNullable<Pending['appended']>,
  result: unknown,
): (readonly TailRow[])[] {
  const outcomes = result as readonly WriteOutcome[] | 'moved';
  // Refused: then nothing of it was written.
  if (outcomes === 'moved' || outcomes.some(isRefusal)) return [];
  return writes.flatMap((write, index) => {
    const outcome = outcomes[index];
    return outcome?.kind === 'appended' ? [tailRows(write, nowMs, outcome)] : [];
  });
}

function isRefusal({ kind }: WriteOutcome): boolean {
  return kind === 'conflict' || kind === 'deleted';
}

function bySequence(a: readonly TailRow[], b: readonly TailRow[]): number {
  return (a[0]?.sequence ?? 0) - (b[0]?.sequence ?? 0);
}
