// Runs the command line in this process or another one, on stores in a temporary folder.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createPaint } from '../src/cli/terminal/paint.ts';
import { runCli } from '../src/cli/run-cli.ts';
import { createEnvelope, type DomainEventEnvelope } from '../src/contracts/envelope.ts';
import { openSqlite, type SqliteEngine } from '../src/engines/sqlite/index.ts';
import type { EventStore } from '../src/store/event-store.ts';
import type { RecordedEvent } from '../src/store/recorded-event.ts';

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly stdin?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly isTTY?: boolean | undefined;
  /** Called with each text written to stdout. */
  readonly onStdout?: ((text: string) => void) | undefined;
}

export async function runMillrace(
  args: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const { cwd = '.', env = {}, stdin = '', isTTY = false, onStdout } = options;
  const written = { stdout: '', stderr: '' };
  const write = (to: 'stdout' | 'stderr') => (text: string) => {
    written[to] += text;
    if (to === 'stdout') onStdout?.(text);
    return true;
  };
  const code = await runCli({
    args,
    stdout: { write: write('stdout'), isTTY },
    stderr: { write: write('stderr'), isTTY },
    stdin: () => Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    env,
    signal: options.signal ?? new AbortController().signal,
    cwd,
    isTTY,
    paint: createPaint(isTTY),
    debug: false,
  });
  return { code, ...written };
}

export async function workFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, maxRetries: 10 }) };
}

export function currencyStream(id: string): string {
  return `banking.currency.v1-core-${id}`;
}

export function renamed(
  id: string,
  name: unknown,
  more: Partial<DomainEventEnvelope> = {},
): DomainEventEnvelope {
  const envelope = createEnvelope(
    { type: 'currency.renamed.v1', payload: { name } },
    { tenant: 'core', aggregate: { bc: 'banking', type: 'currency', id } },
  );
  return { ...envelope, ...more };
}

/** All events in order, without their position and recording time. */
export async function contentOf(store: EventStore): Promise<unknown[]> {
  const events = await store.readAll({ filter: { system: true } }).toArray();
  return events.map(withoutPosition);
}

function withoutPosition(event: RecordedEvent): unknown {
  const { position: _, recordedAt: __, ...rest } = event;
  return rest;
}

export const programPath = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

interface SpawnOptions {
  /** Command-line options for Node itself. */
  readonly node?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Sends the signal once, when the function returns true. */
  readonly signalWhen?: readonly [NodeJS.Signals, () => boolean] | undefined;
}

type Fill = (store: EventStore, db: SqliteEngine) => Promise<unknown>;

export interface Workspace {
  folder(): string;
  /** The path of a file in the folder. */
  at(name: string): string;
  /** Runs a command line, split at spaces, in this process. */
  millrace(line: string, options?: RunOptions): Promise<Outcome>;
  /** Runs a command line in a separate process. */
  spawned(line: string, options?: SpawnOptions): Promise<Outcome>;
  /** Works on the store in a file. */
  fill(name: string, work: Fill): Promise<void>;
  /** Works on the default store of the commands. */
  fillDefault(work: Fill): Promise<void>;
  contentOfFile(name: string): Promise<unknown[]>;
}

/** Creates a folder for each test of the calling suite. */
export function useWorkspace(): Workspace {
  let folder: Awaited<ReturnType<typeof workFolder>>;
  beforeEach(async () => {
    folder = await workFolder();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  const at = (name: string): string => join(folder.path, name);
  const fill: Workspace['fill'] = async (name, work) => {
    await using db = await openSqlite(`sqlite:${at(name)}`);
    await work(db.store, db);
  };
  return {
    folder: () => folder.path,
    at,
    millrace: (line, options) => runMillrace(line.split(' '), { cwd: folder.path, ...options }),
    spawned: (line, options) => spawnMillrace(line.split(' '), { cwd: folder.path, ...options }),
    fill,
    fillDefault: (work) => fill('.millrace/events.db', work),
    async contentOfFile(name) {
      await using db = await openSqlite(`sqlite:${at(name)}`);
      return await contentOf(db.store);
    },
  };
}

export async function spawnMillrace(
  args: readonly string[],
  { cwd, node = [], env = {}, signalWhen }: SpawnOptions & { readonly cwd: string },
): Promise<Outcome> {
  const child = spawn(process.execPath, [...node, programPath, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  child.stdout.on('data', (text: Buffer) => (written.stdout += text.toString()));
  child.stderr.on('data', (text: Buffer) => (written.stderr += text.toString()));
  const timer = setInterval(() => {
    if (signalWhen?.[1]() !== true) return;
    clearInterval(timer);
    child.kill(signalWhen[0]);
  }, 1);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearInterval(timer);
  return { code: code ?? -1, ...written };
}

/** The one JSON document of a command that went well. */
export function jsonOf(outcome: Outcome): unknown {
  assert.deepEqual([outcome.code, outcome.stderr], [0, '']);
  return JSON.parse(outcome.stdout);
}

export function eventsOf(text: string): RecordedEvent[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent);
}
