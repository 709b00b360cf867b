// A server process on a SQLite file, which tests kill; it reports its memory and handles.

import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface ServedSqliteInput {
  readonly file: string;
  readonly host: string;
  readonly port: number;
  readonly groupLeaseMs?: number;
}

export type ServedSqliteMessage =
  | { readonly kind: 'listening'; readonly port: number }
  | {
      readonly kind: 'usage';
      readonly heapBytes: number;
      readonly rssBytes: number;
      readonly sockets: number;
    };

const { file, host, port, groupLeaseMs } = childInput() as ServedSqliteInput;
const db = await openSqlite(`sqlite:${file}`, kurrentStoreOptions);
const server = await startKurrentServer(db.store, {
  leases: db.subscriptions.leases,
  host,
  port,
  ...(groupLeaseMs === undefined ? {} : { limits: { groupLeaseMs } }),
});
tell({ kind: 'listening', port: server.port });

process.on('message', () => {
  // Collect twice, because the second collection frees the objects that the first one finalizes.
  globalThis.gc?.();
  setImmediate(() => {
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    const open = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap');
    tell({ kind: 'usage', heapBytes: heapUsed, rssBytes: rss, sockets: open.length });
  });
});

function tell(message: ServedSqliteMessage): void {
  tellParent(message);
}
