// The topics that run with both clients.

import { appendCases } from './append-cases.ts';
import type { ClientCases } from './client-cases.ts';
import { connectCases } from './connect-cases.ts';
import { deleteCases } from './delete-cases.ts';
import { metadataCases } from './metadata-cases.ts';
import { multiStreamCases } from './multi-stream-cases.ts';
import { persistentCases } from './persistent-cases.ts';
import { readAllCases } from './read-all-cases.ts';
import { readCases } from './read-cases.ts';
import { subscribeCases } from './subscribe-cases.ts';
import { tokenCases } from './token-cases.ts';

export const clientTopics = {
  connecting: connectCases,
  appending: appendCases,
  'appending to several streams': multiStreamCases,
  'reading a stream': readCases,
  'reading all': readAllCases,
  subscribing: subscribeCases,
  'persistent subscriptions': persistentCases,
  deleting: deleteCases,
  metadata: metadataCases,
  tokens: tokenCases,
} as const satisfies Readonly<Record<string, ClientCases>>;
