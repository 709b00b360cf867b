// Our server on SQLite with every commit synced, in a separate process.

import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { ServedInput, ServedMessage } from './served.ts';

const { file } = childInput() as ServedInput;
const { store } = await openSqlite(`sqlite:${file}`, kurrentStoreOptions);
const { port } = await startKurrentServer(store, { port: 0 });
tellParent({ kind: 'listening', port } satisfies ServedMessage);
