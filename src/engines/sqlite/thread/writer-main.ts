// The writer thread: takes all waiting requests, commits them together and replies to them together. One sync to
// disk serves all of them, so durable appends cost little once they are concurrent. Housekeeping runs in between.
// The thread serves one file at a time, and the next file after it has closed the last one.

import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { describeFailure, isBusy } from '../connection/error.ts';
import { createFileCheck } from '../connection/file-identity.ts';
import { configureSqlite, eraseFromDisk, migrateSqlite } from '../connection/schema.ts';
import {
  createSubjectKeyFile,
  moveSubjectKeys,
  subjectKeysPath,
  type KeyOperations,
  type SubjectKeyFile,
} from '../store/subject-keys.ts';
import { toFailure } from './failure.ts';
import { createOperations } from './operations.ts';
import { packOutcome, unpackAppends } from './packed-append.ts';
import {
  type Handlers,
  type MessageFromWriter,
  type MessageToWriter,
  type OperationName,
  type RequestOf,
  type ResultOf,
  type WriterOperations,
  type WriterReply,
  type WriterRequest,
  type WriterSettings,
} from './protocol.ts';
import { createRequestQueue, type Work } from './request-queue.ts';

const port = parentPort;
if (port === null) throw new Error('writer-main.ts runs as a worker thread only');
/** Bounds how long the first request of a group waits for the last one. */
const groupMax = 1_000;
/**
 * How long to poll for the next request. A caller that got its reply usually sends another request immediately. Polling
 * is faster than waking the thread, which takes as long as a sync on a fast disk.
 */
const lingerMs = 0.1;

type Replies = Extract<MessageFromWriter, { readonly kind: 'replies' }>;

const post = (message: MessageFromWriter): void => port.postMessage(message);

/** Takes the messages for the open file. */
let serveFile: ((message: MessageToWriter) => void) | undefined;

port.on('message', (message: MessageToWriter) => {
  if ('kind' in message && message.kind === 'open') open(message.settings);
  else serveFile?.(message);
});

function open({ path, busyTimeoutMs }: WriterSettings): void {
  try {
    const database = new DatabaseSync(path);
    const configure = (each: DatabaseSync): void =>
      whileBusy(() => configureSqlite(each, busyTimeoutMs), busyTimeoutMs);
    configure(database);
    whileBusy(() => migrateSqlite(database), busyTimeoutMs);
    const keys = createSubjectKeyFile(subjectKeysPath(path), configure);
    whileBusy(() => moveSubjectKeys(database, keys), busyTimeoutMs);
    serveFile = serve(database, keys, path);
    post({ kind: 'opened' });
  } catch (error) {
    post({ kind: 'open-failed', failure: toFailure(error) });
    // The end of the thread closes whatever was opened.
    port?.close();
  }
}

/**
 * When two processes enable the write-ahead log of a new file at the same time, SQLite reports the file as locked
 * immediately, whatever `busy_timeout` is.
 */
function whileBusy(work: () => void, busyTimeoutMs: number): void {
  const deadline = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(describeFailure(error)) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function serve(
  database: DatabaseSync,
  keys: SubjectKeyFile,
  path: string,
): (message: MessageToWriter) => void {
  const operations = createOperations(database);
  const begin = database.prepare('begin immediate');
  const commit = database.prepare('commit');
  const checkFile = createFileCheck(path);
  const handlers: Handlers<WriterOperations> = {
    ...operations.handlers,
    ...keys.handlers,
    'log.erase': () => {
      eraseFromDisk(database);
      return true;
    },
  };

  const queue = createRequestQueue();

  return (first) => {
    let message: MessageToWriter | undefined = first;
    let isClosing = false;
    while (message !== undefined || queue.size > 0) {
      // Requests that arrived during the last commit join this one.
      while (message !== undefined) {
        if ('kind' in message) isClosing = true;
        else for (const work of message.flatMap(unpack)) queue.add(work);
        message = isClosing || queue.foreground >= groupMax ? undefined : receive();
      }
      if (queue.size > 0) serveGroup(queue.next());
      if (!isClosing) message = poll();
    }
    if (!isClosing) return;
    keys.close();
    database.close();
    serveFile = undefined;
    post({ kind: 'closed' });
  };

  /** Requests for the file of keys are committed separately. */
  function serveGroup(work: readonly Work[]): void {
    const separate = work.filter(isSeparate);
    if (separate.length > 0) post(ifPresent(separate, runSeparately(separate)));
    const onEvents = separate.length > 0 ? work.filter((each) => !isSeparate(each)) : work;
    if (onEvents.length > 0) post(ifPresent(onEvents, runGroup(onEvents)));
  }

  /** What was written to a removed file must not be acknowledged. */
  function ifPresent(work: readonly Work[], replies: Replies): Replies {
    try {
      checkFile();
      return replies;
    } catch (error) {
      return failAll(work, error);
    }
  }

  /** The file of the keys has its own commits, and a log is truncated outside of all commits. */
  function runSeparately(requests: readonly SeparateRequest[]): Replies {
    const creates = requests.filter(({ operation }) => operation === 'keys.create');
    const others = requests.filter(({ operation }) => operation !== 'keys.create');
    const groups = [...(creates.length === 0 ? [] : [creates]), ...others.map((each) => [each])];
    return { kind: 'replies', outcomes: [], replies: groups.flatMap(runKeyGroup) };
  }

  function runKeyGroup(group: readonly SeparateRequest[]): readonly WriterReply[] {
    const run = (): readonly WriterReply[] =>
      group.map((each) => ({ id: each.id, ok: true, result: execute(each) }));
    try {
      return group[0]?.operation === 'keys.create' ? keys.together(run) : run();
    } catch (error) {
      return failAll(group, error).replies;
    }
  }

  function runGroup(work: readonly Work[]): Replies {
    try {
      begin.run();
    } catch (error) {
      // Another process held the lock for the whole timeout: retrying a thousand requests one by one would
      // wait a thousand times as long.
      return failAll(work, error);
    }
    try {
      operations.begin();
      const outcomes: number[] = [];
      const replies: WriterReply[] = [];
      for (const each of work) {
        if ('write' in each) {
          packOutcome(each.id, operations.appendOne(each.write, each.nowMs), outcomes);
        } else {
          replies.push({ id: each.id, ok: true, result: execute(each) });
        }
      }
      commit.run();
      return { kind: 'replies', outcomes, replies };
    } catch (error) {
      // On a full disk SQLite has rolled back already; a second rollback would hide the reason.
      if (database.isTransaction) database.exec('rollback');
      operations.clearCaches();
      if (work.length === 1) return failAll(work, error);
      // Run each request in a separate commit, so that no request fails because of another one.
      const alone = work.map((each) => runGroup([each]));
      return {
        kind: 'replies',
        outcomes: alone.flatMap(({ outcomes }) => outcomes),
        replies: alone.flatMap(({ replies }) => replies),
      };
    }
  }

  function failAll(work: readonly Work[], error: unknown): Replies {
    const failure = toFailure(error);
    const replies = work.map(({ id }) => ({ id, ok: false, failure }) as const);
    return { kind: 'replies', outcomes: [], replies };
  }

  function execute<Name extends OperationName>(request: RequestOf<Name>): ResultOf<Name> {
    return handlers[request.operation](request);
  }
}

type SeparateRequest = Extract<
  WriterRequest,
  { readonly operation: keyof KeyOperations | 'log.erase' }
>;

const separate: ReadonlySet<string> = new Set<SeparateRequest['operation']>([
  'keys.create',
  'keys.forget',
  'log.erase',
]);

function isSeparate(work: Work): work is SeparateRequest {
  return !('write' in work) && separate.has(work.operation);
}

function receive(): MessageToWriter | undefined {
  const found: { readonly message: MessageToWriter } | undefined =
    port === null ? undefined : receiveMessageOnPort(port);
  return found?.message;
}

function poll(): MessageToWriter | undefined {
  const until = performance.now() + lingerMs;
  let message = receive();
  while (message === undefined && performance.now() < until) message = receive();
  return message;
}

function unpack(part: string | WriterRequest): readonly Work[] {
  return typeof part === 'string' ? unpackAppends(part) : [part];
}
