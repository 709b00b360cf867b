// Runs our ntfy server in a separate process over a given bus, and reports its URL.

import { startOurNtfy } from './our-ntfy.ts';

const input = JSON.parse(process.argv[2] ?? '{}') as {
  readonly folder: string;
  readonly bus: string;
};
const server = await startOurNtfy({ ...input, limits: { delayMsMin: 0 } });
process.send?.({ url: server.url });
