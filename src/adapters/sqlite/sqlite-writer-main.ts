// The writer thread: takes every request that waits, commits them together, answers them together.
// One fsync then serves all of them, so that durable costs nothing once appends are concurrent.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { documentsToWrite, hasMoved } from '../../projections/inline-appends.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import { unpackRows } from './packed-rows.ts';
import { createSqliteAppender } from './sqlite-appender.ts';
import { createSqliteDocuments } from './sqlite-documents.ts';
import { describeFailure, isBusy, unmetText } from './sqlite-error.ts';
import { configureSqlite, migrateSqlite } from './sqlite-schema.ts';
import type {
  InlineWrites,
  PackedWrite,
  SqlStatement,
  WriterReply,
  WriterRequest,
  WriterSettings,
} from './sqlite-writer.ts';

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const { path, busyTimeoutMs } = workerData as WriterSettings;
/** Bounds how long the first request of a group waits for the last one. */
const groupMax = 1_000;

type Message = readonly WriterRequest[] | 'close';

try {
  const database = new DatabaseSync(path);
  whileBusy(() => {
    configureSqlite(database, busyTimeoutMs);
    migrateSqlite(database);
  });
  serve(database);
  port.postMessage({ id: 0, ok: true, result: undefined } satisfies WriterReply);
} catch (error) {
  port.postMessage({ id: 0, ok: false, error: describeFailure(error) } satisfies WriterReply);
  port.close();
}

/**
 * SQLite does not wait where two that open a new file turn its log on at once: it says at once that
 * the file is locked, whatever `busy_timeout` is.
 */
function whileBusy(open: () => void): void {
  const deadline = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      open();
      return;
    } catch (error) {
      if (!isBusy(describeFailure(error)) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function serve(database: DatabaseSync): void {
  const append = createSqliteAppender(database);
  const documents = createSqliteDocuments(database);
  const begin = database.prepare('begin immediate');
  const commit = database.prepare('commit');
  const statements = new Map<string, StatementSync>();

  port?.on('message', (first: Message) => {
    const requests: WriterRequest[] = [];
    let closing = take(first, requests);
    // Whatever came in during the last commit belongs to this one.
    while (!closing && requests.length < groupMax) {
      const more: { readonly message: Message } | undefined = receiveMessageOnPort(port);
      if (more === undefined) break;
      closing = take(more.message, requests);
    }
    if (requests.length > 0) port.postMessage(runGroup(requests));
    if (!closing) return;
    database.close();
    port.close();
  });

  function runGroup(requests: readonly WriterRequest[]): WriterReply[] {
    try {
      begin.run();
    } catch (error) {
      // Another process has kept the lock for as long as we wait: one by one, a thousand requests
      // would wait a thousand times as long.
      return refuse(requests, error);
    }
    try {
      const replies = requests.map((request) => ({
        id: request.id,
        ok: true as const,
        result: execute(request),
      }));
      commit.run();
      return replies;
    } catch (error) {
      // SQLite rolls back by itself on a full disk; asking again would hide the reason.
      if (database.isTransaction) database.exec('rollback');
      append.forgetNames();
      documents.forgetNames();
      if (requests.length === 1) return refuse(requests, error);
      // One of them, or the disk: each alone, so that nobody fails for another's sake.
      return requests.flatMap((request) => runGroup([request]));
    }
  }

  function refuse(requests: readonly WriterRequest[], error: unknown): WriterReply[] {
    return requests.map(({ id }) => ({ id, ok: false, error: describeFailure(error) }));
  }

  function execute(request: WriterRequest): unknown {
    switch (request.kind) {
      case 'append': {
        const writes = request.writes.map(unpack);
        return request.inline === undefined
          ? append.append(writes, request.nowMs)
          : appendInline(writes, request.nowMs, request.inline);
      }
      case 'documents':
        return documents.write(request);
      case 'clear':
        return documents.clear(request.model, request.limit);
      default:
        return request.statements.map(runStatement);
    }
  }

  /** The documents with the events, or neither: what was planned for other revisions is wrong. */
  function appendInline(
    writes: readonly StreamWrite[],
    nowMs: number,
    inline: InlineWrites,
  ): readonly WriteOutcome[] | 'moved' {
    database.exec('savepoint inline');
    const outcomes = append.append(writes, nowMs);
    const isRefused = outcomes.some(({ kind }) => kind === 'conflict' || kind === 'deleted');
    const isMoved =
      !isRefused &&
      (hasMoved(inline.revisions, outcomes) ||
        documentsToWrite(inline.documents, writes, outcomes).some((each) =>
          documents.write(each).includes('foreign'),
        ));
    if (isMoved) {
      database.exec('rollback to inline');
      append.forgetNames();
      documents.forgetNames();
    }
    database.exec('release inline');
    return isMoved ? 'moved' : outcomes;
  }

  function runStatement({ sql, values, expect }: SqlStatement): unknown {
    let statement = statements.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      statements.set(sql, statement);
    }
    const rows = statement.all(...values);
    if (expect !== undefined && rows.length !== expect.rows) {
      throw new Error(unmetText(expect.what));
    }
    return rows;
  }
}

function unpack(write: PackedWrite): StreamWrite {
  return { ...write, rows: unpackRows(write.rows) };
}

function take(message: Message, into: WriterRequest[]): boolean {
  if (message === 'close') return true;
  into.push(...message);
  return false;
}
