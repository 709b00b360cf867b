// Longer runs of the tests with random faults: `node test/store/soak.ts --minutes 30` gives each of
// them that long, two at a time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { hostSharedServers } from '../../src/testing/servers/shared-servers.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
const cwd = import.meta.dirname;
const files = globSync('{kill,postgres-order,sqlite-processes,catch-up}*.test.ts', { cwd });

await using host = await hostSharedServers();
const child = spawn(process.execPath, ['--test', '--test-concurrency=2', ...files.toSorted()], {
  cwd,
  env: { ...process.env, MILLRACE_SOAK: values.minutes },
  stdio: 'inherit',
});
const [code] = await once(child, 'exit');
process.exitCode = Number(code ?? 1);
await host[Symbol.asyncDispose]();
