// Writes the generated files: the JSON Schemas, the tables of error codes, scopes and erasure, the command line
// reference, and the types of the API in the console.
// Tests check that they are up to date.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { transportEnvelopeJsonSchema } from '../src/bus/transport-envelope.ts';
import { envelopeJsonSchema } from '../src/contracts/envelope.ts';
import { errorCodes } from '../src/foundation/error-codes.ts';
import { withCliReference } from './cli-reference.ts';
import { consoleApiTypes } from './console-api.ts';
import { withErasureTable } from './erasure-table.ts';
import { withScopeReference } from './scope-reference.ts';

const schemas = new URL('../schemas/', import.meta.url);
mkdirSync(schemas, { recursive: true });
for (const [name, schema] of [
  ['domain-event-envelope.json', envelopeJsonSchema],
  ['transport-envelope.json', transportEnvelopeJsonSchema],
] as const) {
  writeFileSync(new URL(name, schemas), `${JSON.stringify(schema, null, 2)}\n`);
}

const errors = new URL('../docs/errors.md', import.meta.url);
const page = readFileSync(errors, 'utf8');
const rows = Object.entries(errorCodes).map(
  ([code, { retryable, meaning, remedy }]) =>
    `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${meaning} | ${remedy} |\n`,
);
const [head = ''] = page.split(/^\| `/m);
writeFileSync(errors, head + rows.join(''));

const erasure = new URL('../docs/erasure.md', import.meta.url);
writeFileSync(erasure, withErasureTable(readFileSync(erasure, 'utf8')));

const cli = new URL('../docs/cli.md', import.meta.url);
writeFileSync(cli, withCliReference(readFileSync(cli, 'utf8')));

const scopes = new URL('../docs/scopes.md', import.meta.url);
writeFileSync(scopes, await withScopeReference(readFileSync(scopes, 'utf8')));

const api = new URL('../console/src/api.gen.ts', import.meta.url);
writeFileSync(api, await consoleApiTypes());
