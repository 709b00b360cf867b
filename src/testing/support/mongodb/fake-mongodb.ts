// A fake of MongoDB at the level of its protocol, for what FerretDB does not have: transactions of a replica set. It
// shows that the adapter uses them correctly, not that a real server behaves like this.

import { createServer, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';
import { FakeDatabase, FakeError, type FakeTransaction } from './fake-database.ts';
import { sorted, updated } from './fake-documents.ts';

export interface FakeMongodb extends AsyncDisposable {
  readonly url: string;
}

const opReply = 1;
const opQuery = 2004;
const opMessage = 2013;
const headerBytes = 16;

export async function startFakeMongodb({
  isReplicated,
}: {
  readonly isReplicated: boolean;
}): Promise<FakeMongodb> {
  // One for all names: `commitTransaction` goes to `admin`.
  const db = new FakeDatabase();
  const transactions = new Map<string, FakeTransaction>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    let rest: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= headerBytes && rest.length >= rest.readInt32LE(0)) {
        const message = rest.subarray(0, rest.readInt32LE(0));
        rest = rest.subarray(message.length);
        void answer(socket, message);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  async function answer(socket: Socket, message: Buffer): Promise<void> {
    const request = message.readInt32LE(4);
    const code = message.readInt32LE(12);
    const command = code === opQuery ? queryIn(message) : commandIn(message);
    let reply: Document;
    try {
      reply = { ok: 1, ...(await run(command)) };
    } catch (error) {
      const { code: number = 1, labels = [] } = error instanceof FakeError ? error : {};
      const errmsg = error instanceof Error ? error.message : String(error);
      reply = { ok: 0, code: number, errmsg, errorLabels: [...labels] };
    }
    if (!socket.destroyed)
      socket.write(code === opQuery ? legacyReply(request, reply) : messageReply(request, reply));
  }

  function hello(): Document {
    const host = `127.0.0.1:${port}`;
    return {
      helloOk: true,
      isWritablePrimary: true,
      ismaster: true,
      maxBsonObjectSize: 16_777_216,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      localTime: new Date(),
      logicalSessionTimeoutMinutes: 30,
      minWireVersion: 0,
      maxWireVersion: 25,
      ...(isReplicated
        ? { setName: 'fake', setVersion: 1, hosts: [host], primary: host, me: host }
        : {}),
    };
  }

  function transactionOf(command: Document): FakeTransaction | undefined {
    if (command['autocommit'] !== false) return undefined;
    const key = `${JSON.stringify(command['lsid'])}/${String(command['txnNumber'])}`;
    if (command['startTransaction'] === true) transactions.set(key, db.begin());
    const transaction = transactions.get(key);
    if (transaction?.isAborted === false) return transaction;
    throw new FakeError(251, 'NoSuchTransaction', ['TransientTransactionError']);
  }

  async function run(command: Document): Promise<Document> {
    const [name = ''] = Object.keys(command);
    const collection = `${String(command['$db'])}.${String(command[name])}`;
    const filter = (command['filter'] ?? command['query'] ?? {}) as Document;
    const cursor = (documents: readonly Document[]): Document => ({
      cursor: { id: BSON.Long.ZERO, ns: collection, firstBatch: [...documents] },
    });
    switch (name) {
      case 'hello':
      case 'ismaster':
      case 'isMaster':
        return hello();
      case 'ping':
      case 'endSessions':
      case 'killCursors':
        return {};
      case 'create':
        return {};
      case 'listCollections':
        return cursor(db.names.map((each) => ({ name: each.slice(each.indexOf('.') + 1) })));
      case 'createIndexes':
        for (const index of command['indexes'] as Document[]) db.addIndex(collection, index);
        return {};
      case 'listIndexes':
        return cursor([{ v: 2, key: { _id: 1 }, name: '_id_' }, ...db.indexesOf(collection)]);
      case 'dropIndexes':
        db.dropIndex(collection, String(command['index']));
        return {};
      case 'commitTransaction':
        db.commit(transactionOf(command) as FakeTransaction);
        return {};
      case 'abortTransaction':
        db.abort(transactionOf(command) as FakeTransaction);
        return {};
      case 'find': {
        const found = db.find(collection, filter, transactionOf(command));
        const ordered = sorted(found, (command['sort'] ?? {}) as Document);
        const limit = Number(command['limit'] ?? 0);
        return cursor(limit === 0 ? ordered : ordered.slice(0, limit));
      }
      case 'aggregate': {
        const [first] = command['pipeline'] as Document[];
        const wanted = (first?.['$match'] ?? {}) as Document;
        const n = db.find(collection, wanted, transactionOf(command)).length;
        return cursor(n === 0 ? [] : [{ _id: 1, n }]);
      }
      case 'insert':
        return insert(collection, command);
      case 'update':
        return update(collection, command);
      case 'delete':
        return remove(collection, command);
      case 'findAndModify': {
        const transaction = transactionOf(command);
        return db.writing(() => {
          const [before] = db.find(collection, filter, transaction);
          if (before === undefined) return { value: null };
          const after = updated(before, filter, command['update'] as Document);
          db.write(collection, before['_id'], after, transaction);
          return { value: command['new'] === true ? after : before };
        });
      }
      default:
        throw new FakeError(59, `the fake has no command ${name}`);
    }
  }

  async function insert(collection: string, command: Document): Promise<Document> {
    const transaction = transactionOf(command);
    const writeErrors: Document[] = [];
    let n = 0;
    for (const [index, document] of (command['documents'] as Document[]).entries()) {
      try {
        await db.writing(() => {
          db.checkFree(collection, document['_id'], transaction);
          db.write(collection, document['_id'], document, transaction);
        });
        n += 1;
      } catch (error) {
        if (!(error instanceof FakeError) || error.code !== 11_000) throw error;
        writeErrors.push({ index, code: error.code, errmsg: error.message });
        if (command['ordered'] !== false) break;
      }
    }
    return { n, ...(writeErrors.length === 0 ? {} : { writeErrors }) };
  }

  async function update(collection: string, command: Document): Promise<Document> {
    const transaction = transactionOf(command);
    const upserted: Document[] = [];
    let n = 0;
    for (const [index, statement] of (command['updates'] as Document[]).entries()) {
      const {
        q,
        u,
        upsert = false,
        multi = false,
      } = statement as {
        readonly q: Document;
        readonly u: Document;
        readonly upsert?: boolean;
        readonly multi?: boolean;
      };
      await db.writing(() => {
        const found = db.find(collection, q, transaction);
        for (const before of multi ? found : found.slice(0, 1)) {
          db.write(collection, before['_id'], updated(before, q, u), transaction);
        }
        n += multi ? found.length : Math.min(1, found.length);
        if (found.length > 0 || !upsert) return;
        const document = updated(undefined, q, u);
        document['_id'] ??= new BSON.ObjectId();
        db.checkFree(collection, document['_id'], transaction);
        db.write(collection, document['_id'], document, transaction);
        n += 1;
        upserted.push({ index, _id: document['_id'] as unknown });
      });
    }
    return { n, nModified: n - upserted.length, ...(upserted.length === 0 ? {} : { upserted }) };
  }

  async function remove(collection: string, command: Document): Promise<Document> {
    const transaction = transactionOf(command);
    let n = 0;
    for (const statement of command['deletes'] as Document[]) {
      await db.writing(() => {
        const found = db.find(collection, statement['q'] as Document, transaction);
        const chosen = statement['limit'] === 1 ? found.slice(0, 1) : found;
        for (const document of chosen)
          db.write(collection, document['_id'], undefined, transaction);
        n += chosen.length;
      });
    }
    return { n };
  }

  return {
    url: `mongodb://127.0.0.1:${port}/test`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function queryIn(message: Buffer): Document {
  const name = message.indexOf(0, headerBytes + 4);
  return BSON.deserialize(message.subarray(name + 1 + 8));
}

/** One document, and documents in sequences. */
function commandIn(message: Buffer): Document {
  const command: Document = {};
  let at = headerBytes + 4;
  while (at < message.length) {
    const kind = message[at];
    at += 1;
    const bytes = message.readInt32LE(at);
    if (kind === 0) {
      Object.assign(command, BSON.deserialize(message.subarray(at, at + bytes)));
    } else {
      const end = message.indexOf(0, at + 4);
      const name = message.toString('utf8', at + 4, end);
      const documents: Document[] = [];
      for (let next = end + 1; next < at + bytes; next += message.readInt32LE(next)) {
        const size = message.readInt32LE(next);
        documents.push(BSON.deserialize(message.subarray(next, next + size)));
      }
      command[name] = documents;
    }
    at += bytes;
  }
  return command;
}

function framed(request: number, code: number, parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(headerBytes);
  header.writeInt32LE(headerBytes + body.length, 0);
  header.writeInt32LE(request, 8);
  header.writeInt32LE(code, 12);
  return Buffer.concat([header, body]);
}

function legacyReply(request: number, reply: Document): Buffer {
  const fields = Buffer.alloc(20);
  fields.writeInt32LE(8, 0);
  fields.writeInt32LE(1, 16);
  return framed(request, opReply, [fields, BSON.serialize(reply)]);
}

function messageReply(request: number, reply: Document): Buffer {
  return framed(request, opMessage, [Buffer.alloc(5), BSON.serialize(reply)]);
}
