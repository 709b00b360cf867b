// Documents with the isolation of MongoDB: a transaction reads a snapshot, and a write to a document that another
// transaction has changed since is a conflict. A write outside of transactions waits for the transaction.

import type { Document } from 'mongodb';
import { matches } from './fake-documents.ts';

export class FakeError extends Error {
  readonly code: number;
  readonly labels: readonly string[];
  constructor(code: number, message: string, labels: readonly string[] = []) {
    super(message);
    this.code = code;
    this.labels = labels;
  }
}

export interface FakeTransaction {
  readonly snapshot: number;
  readonly writes: Map<string, Map<string, Document | undefined>>;
  readonly locks: Set<string>;
  isAborted: boolean;
}

/** A write must wait until the transaction that holds the lock ends. */
class Locked extends Error {
  readonly holder: FakeTransaction;
  constructor(holder: FakeTransaction) {
    super('locked');
    this.holder = holder;
  }
}

interface Version {
  readonly at: number;
  readonly document: Document | undefined;
}

const transient = ['TransientTransactionError'];

export class FakeDatabase {
  readonly #collections = new Map<string, Map<string, Version[]>>();
  readonly #indexes = new Map<string, Document[]>();
  readonly #locks = new Map<string, FakeTransaction>();
  readonly #waiting = new Map<FakeTransaction, (() => void)[]>();
  #clock = 0;

  get names(): readonly string[] {
    return [...new Set([...this.#collections.keys(), ...this.#indexes.keys()])];
  }

  begin(): FakeTransaction {
    return { snapshot: this.#clock, writes: new Map(), locks: new Set(), isAborted: false };
  }

  commit(transaction: FakeTransaction): void {
    if (transaction.isAborted) throw new FakeError(251, 'NoSuchTransaction', transient);
    this.#clock += 1;
    for (const [name, writes] of transaction.writes) {
      for (const [key, document] of writes) this.#store(name, key, document);
    }
    this.#release(transaction);
  }

  abort(transaction: FakeTransaction): void {
    transaction.isAborted = true;
    this.#release(transaction);
  }

  indexesOf(name: string): readonly Document[] {
    return this.#indexes.get(name) ?? [];
  }

  addIndex(name: string, index: Document): void {
    const others = this.indexesOf(name).filter((each) => each['name'] !== index['name']);
    this.#indexes.set(name, [...others, index]);
  }

  dropIndex(name: string, index: string): void {
    this.#indexes.set(
      name,
      this.indexesOf(name).filter((each) => each['name'] !== index),
    );
  }

  find(name: string, filter: Document, transaction?: FakeTransaction): readonly Document[] {
    const found = new Map<string, Document>();
    for (const [key, versions] of this.#collections.get(name) ?? []) {
      const seen = versions.findLast(({ at }) => at <= (transaction?.snapshot ?? this.#clock));
      if (seen?.document !== undefined) found.set(key, seen.document);
    }
    for (const [key, document] of transaction?.writes.get(name) ?? []) {
      if (document === undefined) found.delete(key);
      else found.set(key, document);
    }
    return [...found.values()].filter((document) => matches(document, filter));
  }

  /** Stores, replaces or removes one document. */
  write(
    name: string,
    id: unknown,
    document: Document | undefined,
    transaction?: FakeTransaction,
  ): void {
    const key = String(id);
    const lock = `${name}\0${key}`;
    const holder = this.#locks.get(lock);
    if (holder !== undefined && holder !== transaction) {
      throw transaction === undefined ? new Locked(holder) : this.#conflict(transaction);
    }
    const last = this.#collections.get(name)?.get(key)?.at(-1);
    if (transaction !== undefined && (last?.at ?? 0) > transaction.snapshot) {
      throw this.#conflict(transaction);
    }
    if (document !== undefined) this.#checkUnique(name, key, document, transaction);
    if (transaction === undefined) {
      this.#clock += 1;
      this.#store(name, key, document);
      return;
    }
    this.#locks.set(lock, transaction);
    transaction.locks.add(lock);
    const writes = transaction.writes.get(name) ?? new Map<string, Document | undefined>();
    transaction.writes.set(name, writes.set(key, document));
  }

  /** Runs a write; outside of transactions, it waits for locks. */
  async writing<T>(work: () => T): Promise<T> {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!(error instanceof Locked)) throw error;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#waiting.set(error.holder, [...(this.#waiting.get(error.holder) ?? []), resolve]);
        await promise;
      }
    }
  }

  #store(name: string, key: string, document: Document | undefined): void {
    const documents = this.#collections.get(name) ?? new Map<string, Version[]>();
    this.#collections.set(name, documents);
    documents.set(key, [...(documents.get(key) ?? []), { at: this.#clock, document }]);
  }

  #release(transaction: FakeTransaction): void {
    for (const lock of transaction.locks) this.#locks.delete(lock);
    for (const wake of this.#waiting.get(transaction) ?? []) wake();
    this.#waiting.delete(transaction);
  }

  #conflict(transaction: FakeTransaction): FakeError {
    this.abort(transaction);
    return new FakeError(112, 'WriteConflict', transient);
  }

  #checkUnique(
    name: string,
    key: string,
    document: Document,
    transaction: FakeTransaction | undefined,
  ): void {
    for (const index of this.indexesOf(name).filter((each) => each['unique'] === true)) {
      const fields = Object.keys(index['key'] as Document);
      const same = Object.fromEntries(fields.map((field) => [field, document[field] as unknown]));
      const others = this.find(name, same, transaction);
      if (others.every((other) => String(other['_id']) === key)) continue;
      if (transaction !== undefined) this.abort(transaction);
      throw new FakeError(11_000, `E11000 duplicate key in ${name}`);
    }
  }

  /** The error of an insert whose `_id` exists. */
  checkFree(name: string, id: unknown, transaction?: FakeTransaction): void {
    if (this.find(name, { _id: id }, transaction).length === 0) return;
    if (transaction !== undefined) this.abort(transaction);
    throw new FakeError(11_000, `E11000 duplicate key in ${name}`);
  }
}
