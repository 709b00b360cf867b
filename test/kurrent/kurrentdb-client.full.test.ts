// The official KurrentDB client on Millrace's server.

import { runClientCases } from './client-cases.ts';
import { clientTopics } from './client-topics.ts';
import { runKillCases } from './kill-cases.ts';
import { kurrentClient } from './official-clients.ts';

const kind = await kurrentClient();
await runClientCases(kind, clientTopics);
runKillCases(kind);
