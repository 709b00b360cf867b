// Requests that schemathesis generates from the OpenAPI document of a running product cause no server error.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { schemathesisVariable } from '../../tools/schemathesis.ts';
import { createWorkspace, newSeed, soakMinutes } from '../store/rig.ts';
import { startAttackedProduct } from './attacked-product.ts';

const program = process.env[schemathesisVariable];
const skip = program === undefined && 'needs schemathesis: npm run soak -- security';

/** Streams of server-sent events do not end, and a revoked token would end the test. */
const excluded = '/(subscribe|follow|tail|ends|revoke)$';

interface Report {
  readonly operations: { readonly selected: number; readonly tested: number };
  readonly test_cases: { readonly generated: number };
  readonly failures: readonly object[];
  readonly errors: readonly { readonly title: string }[];
}

test('generated requests of an administrator cause no server error', { skip }, async () => {
  await using workspace = await createWorkspace();
  await using attacked = await startAttackedProduct();
  const report = join(workspace.folder, 'report.json');
  const { token, product } = attacked;
  const seconds = Math.ceil(soakMinutes * 60);
  const args = [
    ['run', `${product.base}/openapi.json`],
    ['--header', `Authorization: Bearer ${token}`],
    ['--checks', 'not_a_server_error'],
    ['--phases', 'examples,coverage,fuzzing'],
    ['--max-examples', '50'],
    ['--max-time', String(seconds)],
    ['--exclude-path-regex', excluded],
    ['--request-timeout', '40'],
    ['--seed', String(newSeed())],
    ['--suppress-health-check', 'all'],
    ['--continue-on-failure', '--no-color', '--warnings', 'off'],
    ['--report-json-path', report],
  ].flat();
  const settings = { cwd: workspace.folder, timeout: (seconds + 600) * 1_000 };
  // The program also fails if it cannot generate values for a regular expression, so its report decides.
  const { stdout } = await promisify(execFile)(program ?? '', args, settings).catch(
    (error: { readonly stdout: string }) => error,
  );
  const { operations, failures, errors, test_cases } = JSON.parse(
    await readFile(report, 'utf8'),
  ) as Report;
  assert.deepEqual(failures, [], stdout);
  assert.ok(
    errors.every(({ title }) => title === 'Schema Error'),
    stdout,
  );
  assert.equal(operations.tested, operations.selected);
  // More on a faster machine, as the time is limited.
  assert.ok(test_cases.generated > 2 * operations.selected, stdout);
  await attacked.assertServing('generated requests');
});
