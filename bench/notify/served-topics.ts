// A topic server, ours or ntfy, and clients with little overhead.

import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { startChild } from '../../src/testing/child-process.ts';
import { startNtfy } from '../../src/testing/support/topics/ntfy-server.ts';

export interface ServedTopics extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

export async function startOurs(file: string): Promise<ServedTopics> {
  const script = new URL('./millrace-main.ts', import.meta.url);
  const child = startChild(script, { input: { file } });
  const isUrl = (message: unknown): message is { readonly url: string } =>
    typeof (message as { readonly url?: unknown }).url === 'string';
  const { url } = await child.message(isUrl);
  return { url, pid: child.pid, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

export async function startTheirs(program: string, more: readonly string[]): Promise<ServedTopics> {
  const server = await startNtfy(program, more);
  return {
    url: server.url,
    pid: server.pid ?? 0,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export async function rssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

async function connected(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  return socket;
}

export interface Publisher extends Disposable {
  publish(text: string): Promise<void>;
}

/** One connection that sends one request at a time. */
export async function openPublisher(url: string, topic: string): Promise<Publisher> {
  const socket = await connected(url);
  const end = Buffer.from('}\n');
  let onResponse: (() => void) | undefined;
  let failed: ((error: Error) => void) | undefined;
  socket.on('data', (chunk: Buffer) => {
    if (chunk.includes(' 200 OK') || chunk.subarray(-2).equals(end)) {
      if (chunk.subarray(-2).equals(end)) onResponse?.();
    } else if (chunk.includes('HTTP/1.1')) failed?.(new Error(chunk.toString().slice(0, 200)));
  });
  const head = `POST /${topic} HTTP/1.1\r\nHost: localhost\r\nContent-Length: `;
  return {
    publish: (text) =>
      new Promise((resolve, reject) => {
        onResponse = resolve;
        failed = reject;
        socket.write(`${head}${Buffer.byteLength(text)}\r\n\r\n${text}`);
      }),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

export interface Readers extends Disposable {
  /** Resolves when all readers together received this many messages since the last call. */
  received(count: number): Promise<void>;
}

/** Connections that read a topic and count the messages. */
export async function openReaders(url: string, topic: string, count: number): Promise<Readers> {
  const sockets: Socket[] = [];
  const mark = Buffer.from('"event":"message"');
  let seen = 0;
  let wanted = Infinity;
  let done: (() => void) | undefined;
  const read = async (): Promise<void> => {
    const socket = await connected(url);
    sockets.push(socket);
    const opened = Promise.withResolvers<void>();
    let isOpen = false;
    socket.on('data', (chunk: Buffer) => {
      if (!isOpen && chunk.includes('"event":"open"')) {
        isOpen = true;
        opened.resolve();
      }
      for (let at = chunk.indexOf(mark); at !== -1; at = chunk.indexOf(mark, at + mark.length))
        seen += 1;
      if (seen >= wanted) done?.();
    });
    socket.write(`GET /${topic}/json HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await opened.promise;
  };
  for (let at = 0; at < count; at += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - at) }, read));
  }
  return {
    async received(total) {
      wanted = total;
      if (seen < wanted) await new Promise<void>((resolve) => (done = resolve));
      seen -= total;
      wanted = Infinity;
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
