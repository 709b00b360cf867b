// Longer runs of the tests with random faults: `npm run soak -- --minutes 30` gives each of them that
// long, two at a time; `store`, `subscriptions`, `outbox`, `tasks` or `notify` behind it leaves out the others.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import { keepTestFilesInMemory } from '../tools/test-run/test-folder.ts';

const patterns = {
  store: [
    'test/store/{kill,postgres-order,sqlite-processes,catch-up}*.test.ts',
    'test/kurrent/{adapter-on-postgres,many-clients}*.test.ts',
  ],
  subscriptions: [
    'test/subscriptions/{kill,aggregates}*.test.ts',
    'src/subscriptions/subscription-runner.model.test.ts',
  ],
  outbox: ['test/outbox/{kill,queue-kill}*.test.ts'],
  tasks: ['test/tasks/kill*.test.ts'],
  notify: ['test/scenarios/{notify-killed,notify-race,slack-killed,slack-cluster}*.test.ts'],
} as const;

const { values, positionals } = parseArgs({
  options: { minutes: { type: 'string', default: '10' } },
  allowPositionals: true,
});
const isTopic = (word: string): word is keyof typeof patterns => Object.hasOwn(patterns, word);
const unknown = positionals.filter((word) => !isTopic(word));
if (unknown.length > 0 || !(Number(values.minutes) > 0)) {
  process.stderr.write(
    'usage: npm run soak -- [--minutes <N>] [store] [subscriptions] [outbox] [tasks] [notify]\n',
  );
  process.exit(2);
}
const picked = positionals.filter(isTopic);
const topics = picked.length === 0 ? (Object.keys(patterns) as typeof picked) : picked;
const cwd = resolve(import.meta.dirname, '..');
const files = globSync(
  topics.flatMap((topic) => patterns[topic]),
  { cwd },
);

keepTestFilesInMemory();
await using host = await hostSharedServers();
const child = spawn(process.execPath, ['--test', '--test-concurrency=2', ...files.toSorted()], {
  cwd,
  env: { ...process.env, MILLRACE_SOAK: values.minutes },
  stdio: 'inherit',
});
const [code] = await once(child, 'exit');
process.exitCode = Number(code ?? 1);
await host[Symbol.asyncDispose]();
