// The official client of EventStoreDB, as it was called before, against our own server.

import { runClientCases } from './client-cases.ts';
import { clientTopics } from './client-topics.ts';
import { runKillCases } from './kill-cases.ts';
import { eventStoreClient } from './official-clients.ts';

const kind = await eventStoreClient();
await runClientCases(kind, clientTopics);
runKillCases(kind);
