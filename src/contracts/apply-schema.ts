// Validates a payload with a user's Standard Schema.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { MillraceError } from '../foundation/error.ts';
import { problemsText, type Problem } from './schema.ts';

export function applySchema<Output>(
  name: string,
  schema: StandardSchemaV1<unknown, Output>,
  payload: unknown,
): Output {
  const result = schema['~standard'].validate(payload);
  if (result instanceof Promise) {
    // The result is not awaited: its failure must not become an unhandled rejection.
    result.catch(() => undefined);
    throw new MillraceError('SCHEMA_ASYNC', `the schema of '${name}' validates asynchronously`, {
      details: { name },
    });
  }
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(toProblem);
  throw new MillraceError('PAYLOAD_INVALID', `payload of '${name}': ${problemsText(problems)}`, {
    details: { name, problems },
  });
}

function toProblem(issue: StandardSchemaV1.Issue): Problem {
  const path = (issue.path ?? []).map(
    (segment) => `/${String(typeof segment === 'object' ? segment.key : segment)}`,
  );
  return { path: path.join(''), message: issue.message };
}
