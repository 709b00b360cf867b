// The writer thread as the calling thread sees it. Requests and replies are sent in bundles, and a sync to disk never
// blocks the event loop.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { MillraceError } from '../../../foundation/error.ts';
import { tailRows, type TailRow } from '../../../store/append-tail.ts';
import { isRejected } from '../../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import { fromFailure } from './failure.ts';
import { isPlain, outcomeNumbers, packAppend, unpackOutcome } from './packed-append.ts';
import type {
  InlineWrites,
  MessageFromWriter,
  MessageToWriter,
  OperationName,
  ResultOf,
  SqlRow,
  SqlStatement,
  WriterCall,
  WriterReply,
  WriterRequest,
  WriterSettings,
} from './protocol.ts';

export interface SqliteWriter extends AsyncDisposable {
  /** The number of appends that have no reply yet. */
  readonly appending: number;
  append(
    writes: readonly StreamWrite[],
    nowMs: number,
    inline?: InlineWrites,
  ): Promise<ResultOf<'store.append'>>;
  run(statements: readonly SqlStatement[]): Promise<readonly (readonly SqlRow[])[]>;
  call<Call extends WriterCall>(call: Call): Promise<ResultOf<Call['operation']>>;
}

type AnyResult = ResultOf<OperationName>;

interface Pending {
  readonly isAppend: boolean;
  /** Called in the turn of the event loop in which the result arrived. */
  readonly onCommitted: ((result: AnyResult) => void) | undefined;
  readonly resolve: (result: AnyResult) => void;
  readonly reject: (error: unknown) => void;
}

/** The most requests in flight: with more of them, only the queue would grow. */
const inFlightMax = 10_000;

/** With this many requests the thread starts a commit while the caller prepares the next ones. */
const bundleMax = 32;

/** Threads without a file: starting a thread takes longer than opening a file. */
const idleThreads: Worker[] = [];
const idleThreadsMax = 2;

function startThread(): Worker {
  const script = new URL(`./writer-main${extname(import.meta.url)}`, import.meta.url);
  // Flags of the program, such as --input-type, would keep the thread from starting.
  return new Worker(script, { name: 'millrace-sqlite-writer', execArgv: [] });
}

/** Opens the file in a writer thread and waits until the database is migrated. */
export async function startSqliteWriter(
  settings: WriterSettings,
  onAppended: (rows: readonly TailRow[]) => void = () => undefined,
): Promise<SqliteWriter> {
  const worker = idleThreads.pop() ?? startThread();
  const { path } = settings;
  const pending = new Map<number, Pending>();
  let bundle: (string | WriterRequest)[] = [];
  let bundled = 0;
  let isReferenced = false;
  let flushing: NodeJS.Immediate | 'next' | undefined;
  let nextId = 1;
  let appending = 0;
  /** The rows of the appends in the message that is being handled. */
  let appended: (readonly TailRow[])[] = [];
  let failure: MillraceError | undefined;
  let closing: Promise<void> | undefined;

  const fail = (error: MillraceError): void => {
    failure ??= error;
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  };

  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  // Under `node --watch`, Node itself sends messages about the modules that the thread imports.
  const onMessage = (message: MessageFromWriter | object): void => {
    if (!('kind' in message)) return;
    if (message.kind === 'replies') settleAll(message);
    else if (message.kind === 'opened') opened.resolve();
    else if (message.kind === 'closed') leaveThread();
    else opened.reject(fromFailure(message.failure, path));
  };
  const onError = (error: unknown): void => {
    const crash = new MillraceError('STORE_UNAVAILABLE', 'the writer thread crashed', {
      cause: error,
    });
    opened.reject(crash);
    fail(crash);
  };
  const closedError = (): MillraceError =>
    new MillraceError('STORE_CLOSED', 'the event store was closed');
  const onExit = (): void => {
    fail(closedError());
    closed.resolve();
  };
  worker.on('message', onMessage).on('error', onError).on('exit', onExit);
  worker.ref();
  worker.postMessage({ kind: 'open', settings } satisfies MessageToWriter);
  await opened.promise;
  // An idle store must not keep the process alive; requests in flight must.
  worker.unref();

  function leaveThread(): void {
    if (idleThreads.length >= idleThreadsMax) {
      void worker.terminate();
      return;
    }
    worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    worker.unref();
    idleThreads.push(worker);
    onExit();
  }

  function settleAll({
    outcomes,
    replies,
  }: Extract<MessageFromWriter, { readonly kind: 'replies' }>): void {
    const before = appending;
    appended = [];
    for (let at = 0; at < outcomes.length; at += outcomeNumbers) {
      settle({ id: outcomes[at] ?? 0, ok: true, result: [unpackOutcome(outcomes, at)] });
    }
    for (const reply of replies) settle(reply);
    if (pending.size === 0) setImmediate(releaseThread);
    // Wake readers even if nothing was written: they waited for this reply instead of querying the file.
    if (appending < before) onAppended(appended.toSorted(bySequence).flat());
  }

  function settle(reply: WriterReply): void {
    const waiter = pending.get(reply.id);
    pending.delete(reply.id);
    if (waiter === undefined) return;
    if (waiter.isAppend) appending -= 1;
    if (!reply.ok) {
      waiter.reject(fromFailure(reply.failure, path));
      return;
    }
    waiter.onCommitted?.(reply.result);
    waiter.resolve(reply.result);
  }

  /** Called in the next turn: a caller that got its reply usually sends another request before that. */
  function releaseThread(): void {
    if (pending.size > 0 || !isReferenced) return;
    isReferenced = false;
    worker.unref();
  }

  function send<Name extends OperationName>(
    part: (id: number) => string | WriterRequest,
    onCommitted?: (result: ResultOf<Name>) => void,
    { isAppend = false } = {},
  ): Promise<ResultOf<Name>> {
    if (failure !== undefined) return Promise.reject(failure);
    if (pending.size >= inFlightMax) {
      return Promise.reject(
        new MillraceError('STORE_UNAVAILABLE', `more than ${inFlightMax} writes are in flight`, {
          details: { inFlightMax },
        }),
      );
    }
    return new Promise<ResultOf<Name>>((resolve, reject) => {
      const id = nextId;
      nextId += 1;
      if (!isReferenced) {
        isReferenced = true;
        worker.ref();
      }
      if (isAppend) appending += 1;
      // The thread replies to an id with the result of the operation that was sent under this id.
      pending.set(id, { isAppend, onCommitted, resolve, reject });
      addToBundle(part(id));
    });
  }

  function addToBundle(part: string | WriterRequest): void {
    flushing ??= flushLater();
    const last = bundle.length - 1;
    const before = bundle[last];
    if (typeof part === 'string' && typeof before === 'string') bundle[last] = before + part;
    else bundle.push(part);
    bundled += 1;
    if (bundled === bundleMax) flush();
  }

  function flushLater(): NodeJS.Immediate | 'next' {
    // While the thread is busy, waiting for the next turn costs nothing and bundles the requests of all connections
    // that were read in this turn.
    if (pending.size > 1) return setImmediate(flush);
    // After the microtasks: this bundles the next requests of all callers that just got a reply.
    process.nextTick(flush);
    return 'next';
  }

  function flush(): void {
    if (typeof flushing === 'object') clearImmediate(flushing);
    flushing = undefined;
    if (bundled === 0) return;
    worker.postMessage(bundle satisfies MessageToWriter);
    bundle = [];
    bundled = 0;
  }

  function call<Call extends WriterCall>(request: Call): Promise<ResultOf<Call['operation']>> {
    return send<Call['operation']>((id) => ({ ...request, id }));
  }

  return {
    get appending() {
      return appending;
    },
    append(writes, nowMs, inline) {
      const part = (id: number): string | WriterRequest =>
        inline === undefined && isPlain(writes)
          ? packAppend({ id, nowMs, write: writes[0] })
          : { id, operation: 'store.append', writes, nowMs, inline };
      return send<'store.append'>(
        part,
        (outcomes) => appended.push(...appendedRows(writes, nowMs, outcomes)),
        { isAppend: true },
      );
    },
    run: (statements) => call({ operation: 'sql.run', statements }),
    call,
    [Symbol.asyncDispose]: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    if (failure !== undefined) return;
    // The thread handles messages in order: all earlier requests are committed first.
    flush();
    // A later request must not reach the next file of the thread.
    failure = closedError();
    // Nothing may release the thread before it has closed the file.
    isReferenced = false;
    worker.ref();
    worker.postMessage({ kind: 'close' } satisfies MessageToWriter);
    await closed.promise;
  }
}

/** The rows of an append that stored something, stream by stream. */
export function appendedRows(
  writes: readonly StreamWrite[],
  nowMs: number,
  outcomes: readonly WriteOutcome[] | 'moved',
): (readonly TailRow[])[] {
  // A rejected append wrote nothing.
  if (outcomes === 'moved' || outcomes.some(isRejected)) return [];
  return writes.flatMap((write, index) => {
    const outcome = outcomes[index];
    return outcome?.kind === 'appended' ? [tailRows(write, nowMs, outcome)] : [];
  });
}

function bySequence(a: readonly TailRow[], b: readonly TailRow[]): number {
  return (a[0]?.sequence ?? 0) - (b[0]?.sequence ?? 0);
}
