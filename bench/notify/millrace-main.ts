// Our topics as a separate process on SQLite with every commit synced.

import { openTopics } from '../../src/topics/topics.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { createNtfyHandler } from '../../src/server/topics/ntfy-handler.ts';
import { startNtfyServer } from '../../src/server/topics/start-ntfy-server.ts';

const { file } = JSON.parse(process.argv[2] ?? '{}') as { readonly file: string };
const { bus } = await openSqlite(`sqlite:${file}`);
const limits = { subscriptionsMax: 100_000, newTopicsBurst: 100_000 };
const topics = await openTopics(bus, { limits });
const handler = createNtfyHandler(topics, { exemptHosts: ['127.0.0.1'] });
const server = await startNtfyServer(handler);
process.send?.({ url: server.url });
