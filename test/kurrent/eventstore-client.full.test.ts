// The official EventStoreDB client (the older name of KurrentDB) on Millrace's server. The newer client runs all cases in
// `npm test`; the older one runs those of calls that differ, and all of them in the soak.
// src/server/kurrent/streams/eventstore-client.full.test.ts tests its reads and subscriptions.

import { runClientCases } from './client-cases.ts';
import { clientTopics } from './client-topics.ts';
import { runKillCases } from './kill-cases.ts';
import { eventStoreClient } from './official-clients.ts';
import { soakMinutes } from '../store/rig.ts';

const { connecting, appending, deleting, metadata } = clientTopics;
const isSoak = soakMinutes > 0;

const kind = await eventStoreClient();
await runClientCases(
  kind,
  isSoak
    ? clientTopics
    : {
        connecting,
        appending,
        'reading all': clientTopics['reading all'],
        'persistent subscriptions': clientTopics['persistent subscriptions'],
        deleting,
        metadata,
      },
);
if (isSoak) runKillCases(kind);
