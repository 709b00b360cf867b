// A schema as numbered steps: those there are, those that are left, and taking them.

import { MillraceError } from '../foundation/error.ts';

export interface SchemaStep {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

export interface DatabaseSchema {
  /** All there are; nobody is asked. */
  readonly steps: readonly SchemaStep[];
  /** Those that the database has not taken yet; changes nothing. */
  pending(): Promise<readonly SchemaStep[]>;
  /** Takes what is left, under the engine's lock, and tells what it took. */
  migrate(): Promise<readonly SchemaStep[]>;
  /** The steps as one script to run by hand, after which they count as taken. */
  script(steps: readonly SchemaStep[]): string;
}

export function titled({ number, title, sql }: SchemaStep): string {
  return `-- ${number}: ${title}\n${sql.trim()}\n`;
}

export function checkTaken(taken: number, steps: readonly SchemaStep[], where: string): number {
  if (taken <= steps.length) return taken;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${where} was made by a newer version of Millrace (step ${taken} of ${steps.length})`,
    { details: { taken, known: steps.length } },
  );
}
