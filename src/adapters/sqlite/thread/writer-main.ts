// The writer thread: takes every request that waits, commits them together, answers them together.
// One fsync then serves all of them, so that durable costs nothing once appends are concurrent.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { documentsToWrite, hasMoved } from '../../../projections/inline-appends.ts';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import { packOutcome, unpackAppends, type PlainAppend } from './packed-append.ts';
import { createSqliteAppender } from '../store/appender.ts';
import { createSqliteBus } from '../bus/writer.ts';
import { createSqliteDocuments } from '../read-models/documents.ts';
import { createSqliteTasks } from '../tasks/writer.ts';
import { describeFailure, isBusy, unmetText } from '../connection/error.ts';
import { createSqliteLogSync } from './log-sync.ts';
import { configureSqlite, migrateSqlite } from '../connection/schema.ts';
import type {
  InlineWrites,
  SqlStatement,
  WriterCommitted,
  WriterMessage,
  WriterReplies,
  WriterReply,
  WriterRequest,
  WriterSettings,
} from './writer.ts';

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const { path, busyTimeoutMs } = workerData as WriterSettings;
/** Bounds how long the first request of a group waits for the last one. */
const groupMax = 1_000;
/**
 * Whoever has just been answered mostly asks again at once: looking for it for a moment is quicker
 * than being woken, which takes as long as a fast disk's sync.
 */
const lingerMs = 0.1;

type Message = WriterMessage | { readonly kind: 'close' };
type Work = PlainAppend | WriterRequest;

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
  const appender = createSqliteAppender(database);
  const documents = createSqliteDocuments(database);
  const bus = createSqliteBus(database, path);
  const tasks = createSqliteTasks(database, bus);
  const begin = database.prepare('begin immediate');
  const commit = database.prepare('commit');
  const statements = new Map<string, StatementSync>();
  const log = createSqliteLogSync(database, path);

  port?.on('message', (first: Message) => {
    let message: Message | undefined = first;
    while (message !== undefined) {
      const work: Work[] = [];
      let closing = take(message, work);
      // Whatever came in during the last commit belongs to this one.
      while (!closing && work.length < groupMax) {
        const more = received();
        if (more === undefined) break;
        closing = take(more, work);
      }
      if (work.length > 0) answer(work);
      if (closing) {
        log.close();
        database.close();
        port.close();
        return;
      }
      message = lingering();
    }
  });

  function answer(work: readonly Work[]): void {
    if (!work.every(isRelaxed)) {
      log.beforeSeen();
      port?.postMessage(runGroup(work));
      return;
    }
    log.afterSeen();
    const { replies } = runGroup(work);
    port?.postMessage({ committed: replies } satisfies WriterCommitted);
    try {
      log.sync();
      port?.postMessage({ outcomes: [], replies } satisfies WriterReplies);
    } catch (error) {
      port?.postMessage(refuse(work, error));
    }
  }

  function runGroup(work: readonly Work[]): WriterReplies {
    try {
      begin.run();
    } catch (error) {
      // Another process has kept the lock for as long as we wait: one by one, a thousand requests
      // would wait a thousand times as long.
      return refuse(work, error);
    }
    try {
      appender.begin();
      const outcomes: number[] = [];
      const replies: WriterReply[] = [];
      for (const each of work) {
        if ('write' in each) {
          packOutcome(each.id, appender.one(each.write, each.nowMs), outcomes);
        } else {
          replies.push({ id: each.id, ok: true, result: execute(each) });
        }
      }
      commit.run();
      return { outcomes, replies };
    } catch (error) {
      // SQLite rolls back by itself on a full disk; asking again would hide the reason.
      if (database.isTransaction) database.exec('rollback');
      appender.forget();
      documents.forgetNames();
      tasks.forgetGroups();
      if (work.length === 1) return refuse(work, error);
      // One of them, or the disk: each alone, so that nobody fails for another's sake.
      const alone = work.map((each) => runGroup([each]));
      return {
        outcomes: alone.flatMap(({ outcomes }) => outcomes),
        replies: alone.flatMap(({ replies }) => replies),
      };
    }
  }

  function refuse(work: readonly Work[], error: unknown): WriterReplies {
    const failure = describeFailure(error);
    return { outcomes: [], replies: work.map(({ id }) => ({ id, ok: false, error: failure })) };
  }

  function execute(request: WriterRequest): unknown {
    switch (request.kind) {
      case 'append':
        return request.inline === undefined
          ? appender.together(request.writes, request.nowMs)
          : appendInline(request.writes, request.nowMs, request.inline);
      case 'documents':
        return documents.write(request);
      case 'clear':
        return documents.clear(request.model, request.limit);
      case 'bus':
        return bus(request.request);
      case 'tasks':
        return tasks.execute(request.request);
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
    const outcomes = appender.together(writes, nowMs);
    const isRefused = outcomes.some(({ kind }) => kind === 'conflict' || kind === 'deleted');
    const isMoved =
      !isRefused &&
      (hasMoved(inline.revisions, outcomes) ||
        documentsToWrite(inline.documents, writes, outcomes).some((each) =>
          documents.write(each).includes('foreign'),
        ));
    if (isMoved) {
      database.exec('rollback to inline');
      appender.forget();
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

function isRelaxed(work: Work): boolean {
  if ('write' in work || work.kind !== 'bus') return false;
  return work.request.op === 'append' && work.request.isRelaxed;
}

function received(): Message | undefined {
  const found: { readonly message: Message } | undefined =
    port === null ? undefined : receiveMessageOnPort(port);
  return found?.message;
}

function lingering(): Message | undefined {
  const until = performance.now() + lingerMs;
  let message = received();
  while (message === undefined && performance.now() < until) message = received();
  return message;
}

function take(message: Message, into: Work[]): boolean {
  if ('kind' in message) return true;
  for (const part of message) {
    if (typeof part === 'string') into.push(...unpackAppends(part));
    else into.push(part);
  }
  return false;
}
