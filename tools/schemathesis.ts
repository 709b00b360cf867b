// Installs schemathesis, which generates requests from an OpenAPI document, for `npm run soak -- security`.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './test-run/test-worker.ts';

/** The environment variable with the path of the program, for the test. */
export const schemathesisVariable = 'MILLRACE_SCHEMATHESIS';

const version = '4.32.5';
const folder = join(root, 'node_modules/.cache', `schemathesis-${version}`);
const run = promisify(execFile);

/** Returns the path of the program; rejects if Python, venv or the package index is not available. */
export async function installSchemathesis(): Promise<string> {
  const program = join(folder, 'bin/schemathesis');
  if (existsSync(program)) return program;
  await run('python3', ['-m', 'venv', folder]);
  await run(join(folder, 'bin/pip'), ['install', '--quiet', `schemathesis==${version}`]);
  return program;
}
